#include "report/chip/systolic_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/counted.h"
#include "base/text.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

double real(int64_t value) {
  return static_cast<double>(value);
}

int64_t sram_words(const SystolicCompute& compute) {
  return compute.input_reads + compute.weight_reads + compute.output_writes;
}

int64_t dram_words(const SystolicResult& result) {
  return result.inputs.dram_words + result.weights.dram_words + result.outputs.dram_words;
}

double macs_of(const GemmSize& gemm) {
  return real(gemm.m) * real(gemm.n) * real(gemm.k);
}

double operand_words(const SystolicLayer& layer) {
  const GemmSize gemm = layer.gemm();
  return real(layer.input_height) * real(layer.input_width) * real(layer.channels) + real(gemm.k) * real(gemm.n) +
         real(gemm.m) * real(gemm.n);
}
// Words crossing from and to DRAM, over those that exist, from which a layer is remarked on.
constexpr double notable_fetches = 8;

double used_share(double macs, double cycles, double cells) {
  return macs / (std::max(1.0, cycles) * cells);
}

std::string share_text(double share) {
  return fmt::format("{:.1f}%", 100 * share);
}

// Sums over all repeats of all layers.
struct SystolicTotals {
  double macs = 0, cycles = 0, stalls = 0, physical_stalls = 0, sram_words = 0, dram_words = 0;
  bool all_in_memory = true;
};

SystolicTotals totals_of(const SystolicReport& report) {
  SystolicTotals totals;
  for (const SystolicReport::Row& row : report.rows) {
    const double repeats = real(row.layer.repeats);
    totals.macs += repeats * macs_of(row.layer.layer.gemm());
    totals.cycles += repeats * real(row.run.cycles());
    totals.sram_words += repeats * real(sram_words(row.run.compute));
    if (row.run.memory) {
      totals.stalls += repeats * real(row.run.memory->stall_cycles);
      totals.physical_stalls += repeats * real(row.run.memory->physical_stall_cycles);
      totals.dram_words += repeats * real(dram_words(*row.run.memory));
    } else {
      totals.all_in_memory = false;
    }
  }
  return totals;
}

std::string array_text(const SystolicArray& array) {
  std::string text =
      fmt::format("{} x {} cells; SRAMs {}, {} and {} KiB", array.rows, array.columns, array.input_sram_bytes / 1024,
                  array.weight_sram_bytes / 1024, array.output_sram_bytes / 1024);
  if (array.dram) {
    text += fmt::format("; DRAM {}, {} and {} words per cycle", array.dram->inputs, array.dram->weights,
                        array.dram->outputs);
  } else {
    text += "; DRAM as fast as needed";
  }
  return text + " (inputs, weights, outputs)\n";
}

Json traffic_json(const OperandTraffic& traffic) {
  return Json::object({{"dram_words", traffic.dram_words},
                       {"dram_words_per_cycle", traffic.dram_words_per_cycle},
                       {"sram_words", traffic.sram_words},
                       {"sram_words_per_cycle", traffic.sram_words_per_cycle}});
}

Json layer_head(const RepeatedSystolicLayer& layer, Dataflow dataflow) {
  const GemmSize gemm = layer.layer.gemm();
  return Json::object({{"layer", layer.name},
                       {"repeats", layer.repeats},
                       {"dataflow", dataflow_name(dataflow)},
                       {"m", gemm.m},
                       {"n", gemm.n},
                       {"k", gemm.k}});
}

Json row_json(const SystolicReport::Row& row, double cells) {
  const SystolicLayerRun& run = row.run;
  Json json = layer_head(row.layer, run.dataflow);
  json.set("cycles", run.cycles());
  json.set("compute_cycles", run.compute.cycles);
  json.set("stall_cycles", run.memory ? Json(run.memory->stall_cycles) : Json());
  json.set("physical_stall_cycles", run.memory ? Json(run.memory->physical_stall_cycles) : Json());
  json.set("cycles_with_prefetch", run.memory ? Json(run.memory->total_cycles_with_prefetch) : Json());
  json.set("utilization", used_share(macs_of(row.layer.layer.gemm()), real(run.cycles()), cells));
  json.set("mapping_efficiency", run.compute.mapping_efficiency);
  json.set("sram_words", sram_words(run.compute));
  json.set("dram_words", run.memory ? Json(dram_words(*run.memory)) : Json());
  if (run.memory) {
    json.set("inputs", traffic_json(run.memory->inputs));
    json.set("weights", traffic_json(run.memory->weights));
    json.set("outputs", traffic_json(run.memory->outputs));
  }
  return json;
}

double cells_of(const SystolicArray& array) {
  return real(array.rows) * real(array.columns);
}

}  // namespace

std::string systolic_text(const SystolicReport& report) {
  Table table({{.title = "layer", .align = Table::Align::left},
               {.title = "times"},
               {.title = "flow"},
               {.title = "M"},
               {.title = "N"},
               {.title = "K"},
               {.title = "cycles"},
               {.title = "stalls"},
               {.title = "used"},
               {.title = "SRAM words"},
               {.title = "DRAM words"}});
  for (const SystolicReport::Row& row : report.rows) {
    const GemmSize gemm = row.layer.layer.gemm();
    const SystolicLayerRun& run = row.run;
    table.add({row.layer.name, fmt::format("{}", row.layer.repeats), std::string(dataflow_name(run.dataflow)),
               fmt::format("{}", gemm.m), fmt::format("{}", gemm.n), fmt::format("{}", gemm.k),
               fmt::format("{}", run.cycles()), run.memory ? fmt::format("{}", run.memory->stall_cycles) : "-",
               share_text(used_share(macs_of(gemm), real(run.cycles()), cells_of(report.array))),
               count_text(real(sram_words(run.compute))),
               run.memory ? count_text(real(dram_words(*run.memory))) : "-"});
  }
  const SystolicTotals totals = totals_of(report);
  std::string text = array_text(report.array) + "\n" + table.text();
  text += fmt::format("\nTotal: {:.0f} cycles, {:.0f} of them stalls; {} of the cells; {} SRAM and {} DRAM words\n",
                      totals.cycles, totals.stalls,
                      share_text(used_share(totals.macs, totals.cycles, cells_of(report.array))),
                      count_text(totals.sram_words), count_text(totals.dram_words));
  if (report.array.dram) {
    text += fmt::format("SCALE-Sim counts the wait for a late transfer twice; counted once: {:.0f} stall cycles\n",
                        totals.physical_stalls);
  }
  for (const SystolicReport::Row& row : report.rows) {
    const double fetches = row.run.memory ? real(dram_words(*row.run.memory)) / operand_words(row.layer.layer) : 0;
    if (fetches < notable_fetches) continue;
    text += wrap_lines(
        fmt::format("Layer {}: DRAM words are {:.0f} times the words of its operands, because SCALE-Sim's buffers drop "
                    "words before they are used again. A real schedule would keep them.\n",
                    row.layer.name, fetches),
        page_width(), 2);
  }
  if (!totals.all_in_memory) {
    text += "-: too large to simulate word by word; its cycles are those of the array alone\n";
  }
  return text;
}

Json systolic_json(const SystolicReport& report) {
  Json rows = Json::array();
  for (const SystolicReport::Row& row : report.rows) rows.push(row_json(row, cells_of(report.array)));
  const SystolicTotals totals = totals_of(report);
  return Json::object(
      {{"rows", report.array.rows},
       {"columns", report.array.columns},
       {"layers", std::move(rows)},
       {"total", Json::object({{"macs", totals.macs},
                               {"cycles", totals.cycles},
                               {"stall_cycles", totals.stalls},
                               {"physical_stall_cycles", totals.physical_stalls},
                               {"utilization", used_share(totals.macs, totals.cycles, cells_of(report.array))},
                               {"sram_words", totals.sram_words},
                               {"dram_words", totals.all_in_memory ? Json(totals.dram_words) : Json()}})}});
}

std::string cores_text(const CoresReport& report) {
  Table table({{.title = "layer", .align = Table::Align::left},
               {.title = "times"},
               {.title = "flow"},
               {.title = "partition", .align = Table::Align::left},
               {.title = "grid"},
               {.title = "cycles"},
               {.title = "one core"},
               {.title = "faster"},
               {.title = "words per core"}});
  double cycles = 0, one_core = 0;
  for (const CoresReport::Row& row : report.rows) {
    const PartitionedGemm& best = row.run.best;
    table.add({row.layer.name, fmt::format("{}", row.layer.repeats), std::string(dataflow_name(row.run.dataflow)),
               std::string(partition_name(best.partition.kind)),
               fmt::format("{}x{}", best.partition.grid_rows, best.partition.grid_columns),
               fmt::format("{}", best.cycles), fmt::format("{}", row.run.one_core_cycles),
               fmt::format("{:.2f}x", real(row.run.one_core_cycles) / std::max(1.0, real(best.cycles))),
               count_text(real(best.words_per_core))});
    cycles += real(row.layer.repeats) * real(best.cycles);
    one_core += real(row.layer.repeats) * real(row.run.one_core_cycles);
  }
  return fmt::format("{} of {} x {} cells; memory is not modeled\n\n", counted(report.cores, "core"), report.core.rows,
                     report.core.columns) +
         table.text() +
         fmt::format("\nTotal: {:.0f} cycles, {:.2f} times as fast as one core\n", cycles,
                     one_core / std::max(1.0, cycles));
}

Json cores_json(const CoresReport& report) {
  Json rows = Json::array();
  double cycles = 0;
  for (const CoresReport::Row& row : report.rows) {
    const PartitionedGemm& best = row.run.best;
    Json json = layer_head(row.layer, row.run.dataflow);
    json.set("partition", partition_name(best.partition.kind));
    json.set("grid_rows", best.partition.grid_rows);
    json.set("grid_columns", best.partition.grid_columns);
    json.set("cycles", best.cycles);
    json.set("one_core_cycles", row.run.one_core_cycles);
    json.set("words_per_core", best.words_per_core);
    rows.push(std::move(json));
    cycles += real(row.layer.repeats) * real(best.cycles);
  }
  return Json::object({{"rows", report.core.rows},
                       {"columns", report.core.columns},
                       {"cores", report.cores},
                       {"layers", std::move(rows)},
                       {"total", Json::object({{"cycles", cycles}})}});
}

std::string systolic_chip_text(const SystolicChip& chip, const ChipNetworkRun& run) {
  const std::string other = chip.vector ? "vector" : "other";
  Table table({{.title = "layer", .align = Table::Align::left},
               {.title = "MACs"},
               {.title = "arrays"},
               {.title = "memory"},
               {.title = other},
               {.title = "cycles"},
               {.title = "time"},
               {.title = "of peak"},
               {.title = "bound by", .align = Table::Align::left}});
  const double clock = chip.clock.value.value();
  const auto add = [&](const std::string& name, double macs, const ChipLayerCycles& cycles, double total,
                       const std::string& bound) {
    table.add({name, count_text(macs), fmt::format("{:.0f}", cycles.matrix), fmt::format("{:.0f}", cycles.memory),
               fmt::format("{:.0f}", cycles.vector), fmt::format("{:.0f}", total), duration_text(total / clock),
               share_text(2 * macs / (total / clock) / chip.peak().value()), bound});
  };
  for (const ChipLayerRun& layer : run.layers) {
    add(layer.name, layer.macs, layer.cycles, layer.cycles.total(),
        std::string(chip_bound_name(chip_bound(layer.cycles))));
  }
  table.add_rule();
  add("all", run.macs(), run.sum(), run.sum().total() + run.launch_cycles,
      std::string(chip_bound_name(chip_bound(run.sum()))));
  std::string text = fmt::format("{}: cycles at {:.0f} MHz; parts of a layer add up\n\n", chip.title, clock / 1e6);
  text += table.text();
  if (run.launch_cycles > 0) text += fmt::format("\nall: including {:.0f} cycles to launch\n", run.launch_cycles);
  if (!chip.vector) text += "\nother: cycles without matrix products; memory: waiting for weights, shifting them in\n";
  return text;
}

Json systolic_chip_json(const SystolicChip& chip, const ChipNetworkRun& run) {
  const auto parts = [](Json json, const ChipLayerCycles& cycles) {
    json.set("array_cycles", cycles.matrix);
    json.set("memory_cycles", cycles.memory);
    json.set("vector_cycles", cycles.vector);
    json.set("bound", chip_bound_name(chip_bound(cycles)));
    return json;
  };
  Json rows = Json::array();
  for (const ChipLayerRun& layer : run.layers) {
    Json row = Json::object({{"layer", layer.name}, {"macs", layer.macs}, {"cycles", layer.cycles.total()}});
    rows.push(parts(std::move(row), layer.cycles));
  }
  Json total = Json::object({{"macs", run.macs()},
                             {"cycles", run.sum().total() + run.launch_cycles},
                             {"launch_cycles", run.launch_cycles},
                             {"seconds", run.time(chip).value()}});
  return Json::object(
      {{"chip", chip.name}, {"layers", std::move(rows)}, {"total", parts(std::move(total), run.sum())}});
}

}  // namespace foretoken
