#include "accelerator/systolic/array.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/range.h"

namespace foretoken {
namespace {

// Far beyond any array or layer; products of two such sizes still fit in 64 bits.
constexpr Range<int64_t> systolic_size{1, int64_t{1} << 31};

void check_systolic_size(std::string_view of, std::string_view name, int64_t value) {
  if (systolic_size.holds(value)) return;
  throw InputError(
      {.path = fmt::format("{}.{}", of, name), .value = std::to_string(value), .expected = range_text(systolic_size)});
}

}  // namespace

std::string_view dataflow_name(Dataflow dataflow) {
  switch (dataflow) {
    case Dataflow::output_stationary:
      return "os";
    case Dataflow::weight_stationary:
      return "ws";
    case Dataflow::input_stationary:
      return "is";
  }
  ensure(false, "a dataflow is one of three");
  return "";
}

std::optional<Dataflow> find_dataflow(std::string_view name) {
  for (const Dataflow dataflow : dataflows) {
    if (dataflow_name(dataflow) == name) return dataflow;
  }
  return std::nullopt;
}

int64_t SystolicLayer::output_height() const {
  return ceil_quotient(input_height - filter_height + stride_height, stride_height);
}

int64_t SystolicLayer::output_width() const {
  return ceil_quotient(input_width - filter_width + stride_width, stride_width);
}

GemmSize SystolicLayer::gemm() const {
  return {.m = output_height() * output_width(), .n = filters, .k = filter_height * filter_width * channels};
}

void check_single_gemm(const GemmSize& gemm) {
  if (gemm.batch == 1) return;
  throw InputError(
      {.path = "gemm.batch", .value = std::to_string(gemm.batch), .expected = "1; products of a batch run one by one"});
}

SystolicLayer as_layer(const GemmSize& gemm) {
  check_single_gemm(gemm);
  return {.input_height = gemm.m, .input_width = gemm.k, .filter_width = gemm.k, .filters = gemm.n};
}

void check_layer(const SystolicLayer& layer) {
  check_systolic_size("layer", "input_height", layer.input_height);
  check_systolic_size("layer", "input_width", layer.input_width);
  check_systolic_size("layer", "filter_height", layer.filter_height);
  check_systolic_size("layer", "filter_width", layer.filter_width);
  check_systolic_size("layer", "channels", layer.channels);
  check_systolic_size("layer", "filters", layer.filters);
  check_systolic_size("layer", "stride_height", layer.stride_height);
  check_systolic_size("layer", "stride_width", layer.stride_width);
  if (layer.filter_height > layer.input_height || layer.filter_width > layer.input_width) {
    throw InputError({.path = "layer.filter",
                      .value = fmt::format("{} x {}", layer.filter_height, layer.filter_width),
                      .expected = fmt::format("a filter no larger than its input of {} x {}", layer.input_height,
                                              layer.input_width)});
  }
  const double outputs = static_cast<double>(layer.output_height()) * static_cast<double>(layer.output_width());
  const double window = static_cast<double>(layer.filter_height) * static_cast<double>(layer.filter_width) *
                        static_cast<double>(layer.channels);
  const double macs = outputs * window * static_cast<double>(layer.filters);
  if (macs > static_cast<double>(largest_exact_integer)) {
    throw InputError({.path = "layer", .value = fmt::format("{:.3g} MACs", macs), .expected = "at most 2^53 MACs"});
  }
}

void check_array(const SystolicArray& array) {
  check_systolic_size("array", "rows", array.rows);
  check_systolic_size("array", "columns", array.columns);
  check_systolic_size("array", "input_sram_bytes", array.input_sram_bytes);
  check_systolic_size("array", "weight_sram_bytes", array.weight_sram_bytes);
  check_systolic_size("array", "output_sram_bytes", array.output_sram_bytes);
  check_systolic_size("array", "word_bytes", array.word_bytes);
  if (!array.dram) return;
  check_systolic_size("array", "dram.inputs", array.dram->inputs);
  check_systolic_size("array", "dram.weights", array.dram->weights);
  check_systolic_size("array", "dram.outputs", array.dram->outputs);
}

}  // namespace foretoken
