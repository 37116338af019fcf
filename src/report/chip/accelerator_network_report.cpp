#include "report/chip/accelerator_network_report.h"

#include <fmt/format.h>

#include "base/counted.h"
#include "base/csv.h"
#include "base/text.h"
#include "report/chip/accelerator_report.h"
#include "report/parts/table.h"

namespace foretoken {
namespace {

double words_in_bytes(double words, const Architecture& architecture) {
  return words * architecture.levels.front().word_bits / 8;
}

std::string totals_line(const NetworkTotals& totals, const Architecture& architecture) {
  return fmt::format("{:.4g} cycles ({}), latency {}, {}, {} to and from {}, {:.1f}% of the multipliers", totals.cycles,
                     duration_text(totals.cycles / architecture.clock_hz),
                     duration_text(totals.latency_cycles / architecture.clock_hz), picojoule_text(totals.energy_pj),
                     bytes_text(words_in_bytes(totals.outer_words, architecture)), architecture.levels.front().name,
                     100 * totals.operations / (totals.cycles * operations_per_cycle(architecture)));
}

Json totals_json(const NetworkTotals& totals, const Architecture& architecture) {
  return Json::object({{"operations", totals.operations},
                       {"cycles", totals.cycles},
                       {"seconds", totals.cycles / architecture.clock_hz},
                       {"latency_cycles", totals.latency_cycles},
                       {"energy_pj", totals.energy_pj},
                       {"outer_words", totals.outer_words}});
}

std::string group_name(const FusedGroup& group, std::span<const AcceleratorLayer> layers) {
  std::string name = layers[group.first].name;
  for (size_t i = 1; i < group.count; ++i) name += " + " + layers[group.first + i].name;
  return name;
}

}  // namespace

VectorSummary vector_summary(std::span<const VectorWork> work, const Architecture& architecture) {
  VectorSummary summary;
  double operations = 0;
  for (const VectorWork& own : work) operations += own.operations;
  if (operations == 0) return summary;
  const double rate = vector_operations_per_cycle(architecture);
  const double cycles = operations / rate;
  const bool assumed = architecture.vector.operations_per_cycle <= 0;
  std::string families;
  Json list = Json::array();
  for (const VectorWork& own : work) {
    if (own.operations == 0) continue;
    families += fmt::format("{}{} ({:.4g})", families.empty() ? "" : ", ", own.family, own.count);
    list.push(Json::object({{"family", own.family}, {"count", own.count}, {"operations", own.operations}}));
  }
  summary.text = fmt::format(
      "Beside the array, not in the total: {} take {:.4g} cycles ({}) on a vector unit of {:.6g} operations per "
      "cycle{}\n",
      families, cycles, duration_text(cycles / architecture.clock_hz), rate,
      assumed ? ", one for each column of the array (assumed; `vector` in the design changes it)" : "");
  summary.json = Json::object({{"operations_per_cycle", rate},
                               {"assumed", assumed},
                               {"operations", operations},
                               {"cycles", cycles},
                               {"work", std::move(list)}});
  return summary;
}

namespace {

bool has_zeros(const NetworkMap& map) {
  return !map.layers.empty() && map.layers.front().sparse.has_value();
}

double busy_share(double operations, double cycles, const Architecture& architecture) {
  return operations / (cycles * operations_per_cycle(architecture));
}

// Layers whose mappings were searched with zeros: beside what they cost, the share of the same mapping without any.
std::string sparse_map_table(const NetworkMap& map, const Architecture& architecture) {
  Table table({{.title = "layer", .align = Table::Align::left},
               {.title = "count"},
               {.title = "MACs"},
               {.title = "cycles"},
               {.title = "cycles/dense"},
               {.title = "used"},
               {.title = "energy"},
               {.title = "energy/dense"},
               {.title = "outer"}});
  for (const SearchedLayer& own : map.layers) {
    const Evaluation& dense = own.result.best->evaluation;
    const SparseEvaluation& sparse = *own.sparse;
    table.add({own.layer.name, fmt::format("{:.4g}", own.layer.count), count_text(sparse.operations.actual),
               fmt::format("{:.0f}", sparse.cycles), fmt::format("{:.2f}", sparse.cycles / dense.cycles),
               fmt::format("{:.0f}%", 100 * busy_share(sparse.operations.actual, sparse.cycles, architecture)),
               picojoule_text(sparse.energy_pj), fmt::format("{:.2f}", sparse.energy_pj / dense.energy_pj),
               count_text(outer_words(sparse, own.layer.problem))});
  }
  return table.text(accelerator_page_width);
}

std::string dense_map_table(const NetworkMap& map, const Architecture& architecture) {
  Table table({{.title = "layer", .align = Table::Align::left},
               {.title = "count"},
               {.title = "MACs"},
               {.title = "cycles"},
               {.title = "used"},
               {.title = "energy"},
               {.title = "pJ/MAC"},
               {.title = "outer"},
               {.title = "gap"}});
  for (const SearchedLayer& own : map.layers) {
    const Evaluation& result = own.result.best->evaluation;
    table.add({own.layer.name, fmt::format("{:.4g}", own.layer.count), count_text(result.operations),
               fmt::format("{:.0f}", result.cycles), fmt::format("{:.0f}%", 100 * utilization(result, architecture)),
               picojoule_text(result.energy_pj), fmt::format("{:.3g}", result.energy_pj / result.operations),
               count_text(outer_words(result, own.layer.problem)), fmt::format("{:.0f}%", 100 * own.result.gap)});
  }
  return table.text(accelerator_page_width);
}

}  // namespace

Json sparse_json(const SparseEvaluation& result) {
  return Json::object({{"cycles", result.cycles},
                       {"energy_pj", result.energy_pj},
                       {"operations", result.operations.actual},
                       {"gated_operations", result.operations.gated},
                       {"skipped_operations", result.operations.skipped}});
}

std::string network_map_text(const NetworkMap& map, const Architecture& architecture) {
  double layers = 0;
  for (const SearchedLayer& own : map.layers) layers += own.layer.count;
  std::string text =
      fmt::format("{:.4g} {} of {} on {}{}\n\n", layers, layers == 1 ? "layer" : "layers",
                  counted(map.layers.size(), "kind"), architecture.name, has_zeros(map) ? ", with zeros" : "");
  if (has_zeros(map)) {
    return text + sparse_map_table(map, architecture) + "\nTotal: " + totals_line(map.totals, architecture) +
           fmt::format("\n{:.2f} of the cycles and {:.2f} of the energy of the same mappings without zeros\n",
                       map.totals.cycles / map.dense.cycles, map.totals.energy_pj / map.dense.energy_pj) +
           "MACs: multiplications left to do\nouter: words to and from the outermost memory, without metadata\n";
  }
  return text + dense_map_table(map, architecture) + "\nTotal: " + totals_line(map.totals, architecture) +
         "\nouter: words to and from the outermost memory\ngap: the best mapping is at most this much better "
         "(proven bound)\n";
}

Json network_map_json(const NetworkMap& map, const Architecture& architecture) {
  Json layers = Json::array();
  for (const SearchedLayer& own : map.layers) {
    const FoundMapping& best = *own.result.best;
    Json entry = mapping_report_json({architecture, own.layer.problem, best.mapping, best.evaluation});
    entry.set("layer", own.layer.name);
    entry.set("count", own.layer.count);
    entry.set("gap", own.result.bound > 0 ? Json(own.result.gap) : Json());  // nothing is proven with zeros
    if (own.sparse) entry.set("sparse", sparse_json(*own.sparse));
    layers.push(std::move(entry));
  }
  Json json = Json::object({{"architecture", architecture.name}, {"total", totals_json(map.totals, architecture)}});
  if (has_zeros(map)) json.set("dense", totals_json(map.dense, architecture));
  return json.set("layers", std::move(layers));
}

std::string network_map_csv(const NetworkMap& map, const Architecture& architecture) {
  std::string text = "layer,count,operations,cycles,utilization,energy_pj,outer_words,gap\n";
  for (const SearchedLayer& own : map.layers) {
    if (own.sparse) {
      const SparseEvaluation& sparse = *own.sparse;
      text +=
          fmt::format("{},{},{},{},{},{},{},{}\n", csv_cell(own.layer.name), own.layer.count, sparse.operations.actual,
                      sparse.cycles, busy_share(sparse.operations.actual, sparse.cycles, architecture),
                      sparse.energy_pj, outer_words(sparse, own.layer.problem), own.result.gap);
      continue;
    }
    const Evaluation& result = own.result.best->evaluation;
    text += fmt::format("{},{},{},{},{},{},{},{}\n", csv_cell(own.layer.name), own.layer.count, result.operations,
                        result.cycles, utilization(result, architecture), result.energy_pj,
                        outer_words(result, own.layer.problem), own.result.gap);
  }
  return text;
}

std::string fusion_text(const FusionResult& result, std::span<const AcceleratorLayer> layers,
                        const Architecture& architecture) {
  Table table({{.title = "layers", .align = Table::Align::left},
               {.title = "rows"},
               {.title = "heads"},
               {.title = "turns"},
               {.title = "weights", .align = Table::Align::left},
               {.title = "cycles"},
               {.title = "energy"},
               {.title = "outer"}});
  for (const FusedGroup& group : result.groups) {
    table.add({group_name(group, layers), group.rows > 0 ? fmt::format("{}", group.rows) : "all",
               group.heads > 0 ? fmt::format("{}", group.heads) : "", fmt::format("{:.0f}", group.turns),
               group.weights_stay ? "stay" : "", fmt::format("{:.4g}", group.totals.cycles),
               picojoule_text(group.totals.energy_pj), count_text(group.totals.outer_words)});
  }
  return table.text(accelerator_page_width) +
         "rows, heads: processed at a time in a fused group\nouter: words to and from the outermost "
         "memory\n\nTogether: " +
         totals_line(result.together, architecture) + "\nApart:    " + totals_line(result.apart, architecture) + "\n";
}

Json fusion_json(const FusionResult& result, std::span<const AcceleratorLayer> layers,
                 const Architecture& architecture) {
  Json groups = Json::array();
  for (const FusedGroup& group : result.groups) {
    Json names = Json::array();
    for (size_t i = 0; i < group.count; ++i) names.push(layers[group.first + i].name);
    groups.push(Json::object({{"layers", std::move(names)},
                              {"rows", group.rows},
                              {"heads", group.heads},
                              {"turns", group.turns},
                              {"weights_stay", group.weights_stay},
                              {"total", totals_json(group.totals, architecture)}}));
  }
  return Json::object({{"architecture", architecture.name},
                       {"together", totals_json(result.together, architecture)},
                       {"apart", totals_json(result.apart, architecture)},
                       {"groups", std::move(groups)}});
}

}  // namespace foretoken
