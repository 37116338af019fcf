#include "accelerator/systolic/scalesim_cases.h"

#include <fmt/format.h>

#include "base/json.h"

namespace foretoken {
namespace {

constexpr Range<int64_t> case_size{1, int64_t{1} << 31};

GemmSize read_case_gemm(const JsonView& gemm) {
  return {
      .m = gemm.at("M").integer(case_size), .n = gemm.at("N").integer(case_size), .k = gemm.at("K").integer(case_size)};
}

SystolicLayer read_case_layer(const JsonView& layer) {
  if (const auto gemm = layer.find("gemm")) return as_layer(read_case_gemm(*gemm));
  const JsonView conv = layer.at("conv");
  SystolicLayer result{.input_height = conv.at("H").integer(case_size),
                       .input_width = conv.at("W").integer(case_size),
                       .filter_height = conv.at("R").integer(case_size),
                       .filter_width = conv.at("S").integer(case_size),
                       .channels = conv.at("C").integer(case_size),
                       .filters = conv.at("F").integer(case_size)};
  result.stride_height = result.stride_width = conv.at("stride").integer(case_size);
  check_layer(result);
  const auto as_gemm = layer.find("as_gemm");
  if (as_gemm && read_case_gemm(*as_gemm) != result.gemm()) {
    const GemmSize gemm = result.gemm();
    as_gemm->fail(fmt::format("the GEMM of its convolution, {} x {} x {}", gemm.m, gemm.n, gemm.k));
  }
  return result;
}

SystolicArray read_case_array(const JsonView& entry) {
  const std::vector<JsonView> sides = entry.at("array").items();
  if (sides.size() != 2) entry.at("array").fail("rows and columns");
  const auto dataflow = find_dataflow(entry.at("dataflow").string());
  if (!dataflow) entry.at("dataflow").fail("os, ws or is");
  const JsonView sram = entry.at("sram_kB");
  constexpr Range<int64_t> kib{1, 1 << 20};
  SystolicArray array{.rows = sides[0].integer(case_size),
                      .columns = sides[1].integer(case_size),
                      .dataflow = *dataflow,
                      .input_sram_bytes = 1024 * sram.at("ifmap").integer(kib),
                      .weight_sram_bytes = 1024 * sram.at("filter").integer(kib),
                      .output_sram_bytes = 1024 * sram.at("ofmap").integer(kib)};
  if (const auto bandwidth = entry.find("bandwidth")) {
    const int64_t words = bandwidth->integer(case_size);
    array.dram = DramWordsPerCycle{.inputs = words, .weights = words, .outputs = words};
  }
  return array;
}

void add_scalesim_figures(const JsonView& group, SystolicFigures& figures) {
  for (const auto& [name, value] : group.members()) {
    if (value.is(Json::Kind::object)) {
      add_scalesim_figures(value, figures);
    } else {
      figures.emplace(name, value.number());
    }
  }
}

void add_scalesim_operand(SystolicFigures& figures, const std::string& name, const std::string& title,
                          const OperandTraffic& operand, const std::string& access) {
  const auto add_memory = [&](const std::string& memory, int64_t words, int64_t first, int64_t last, double rate) {
    const std::string prefix = fmt::format("{} {} ", memory, title);
    figures.emplace(prefix + "Start Cycle", static_cast<double>(first));
    figures.emplace(prefix + "Stop Cycle", static_cast<double>(last));
    figures.emplace(prefix + access, static_cast<double>(words));
    figures.emplace(fmt::format("Avg {} {} BW", name, memory), rate);
  };
  add_memory("SRAM", operand.sram_words, operand.sram_first_cycle, operand.sram_last_cycle,
             operand.sram_words_per_cycle);
  add_memory("DRAM", operand.dram_words, operand.dram_first_cycle, operand.dram_last_cycle,
             operand.dram_words_per_cycle);
}

}  // namespace

std::vector<ScaleSimCase> read_scalesim_cases(const std::filesystem::path& path) {
  const Json document = read_json_file(path, {.max_bytes = size_t{16} << 20});
  std::vector<ScaleSimCase> cases;
  for (const JsonView& entry : JsonView(document, path.string()).at("cases").items()) {
    ScaleSimCase read{.id = entry.at("id").string(),
                      .array = read_case_array(entry),
                      .layer = read_case_layer(entry.at("layer")),
                      .expected = {},
                      .why_not = {}};
    if (!read.array.dram && entry.at("mode").string() != "estimate bandwidth") {
      read.why_not = fmt::format("mode `{}` without a bandwidth", entry.at("mode").string());
    }
    add_scalesim_figures(entry.at("expected"), read.expected);
    cases.push_back(std::move(read));
  }
  return cases;
}

SystolicFigures scalesim_figures(const SystolicResult& result) {
  SystolicFigures figures{
      {"total_cycles_incl_prefetch", static_cast<double>(result.total_cycles_with_prefetch)},
      {"total_cycles", static_cast<double>(result.total_cycles)},
      {"stall_cycles", static_cast<double>(result.stall_cycles)},
      {"overall_util_pct", 100 * result.overall_utilisation},
      {"mapping_eff_pct", 100 * result.compute.mapping_efficiency},
      {"compute_util_pct", 100 * result.compute.compute_utilisation},
  };
  add_scalesim_operand(figures, "IFMAP", "IFMAP", result.inputs, "Reads");
  add_scalesim_operand(figures, "FILTER", "Filter", result.weights, "Reads");
  add_scalesim_operand(figures, "OFMAP", "OFMAP", result.outputs, "Writes");
  return figures;
}

}  // namespace foretoken
