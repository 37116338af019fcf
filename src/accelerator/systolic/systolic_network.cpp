#include "accelerator/systolic/systolic_network.h"

#include <fmt/format.h>

#include <tuple>

#include "base/error.h"
#include "base/range.h"

namespace foretoken {
namespace {

int64_t dram_words(const SystolicLayerRun& run) {
  if (!run.memory) return 0;
  return run.memory->inputs.dram_words + run.memory->weights.dram_words + run.memory->outputs.dram_words;
}

// Input that the windows cover: SCALE-Sim would round the number of outputs up otherwise.
int64_t covered_input(int64_t outputs, int64_t kernel, int64_t stride) {
  return (outputs - 1) * stride + kernel;
}

int64_t repeats_of(const NetworkLayer& layer, int64_t batch, int64_t groups) {
  const double repeats = static_cast<double>(layer.count) * static_cast<double>(batch) * static_cast<double>(groups);
  if (repeats > static_cast<double>(largest_exact_integer)) {
    throw InputError({.source = printable(layer.name),
                      .path = "repeats",
                      .value = fmt::format("{:.3g}", repeats),
                      .expected = "at most 2^53"});
  }
  return layer.count * batch * groups;
}

}  // namespace

RepeatedSystolicLayer systolic_layer(const NetworkLayer& layer) {
  refuse_dilation(layer);
  if (const auto* gemm = std::get_if<GemmSize>(&layer.work)) {
    return {.name = layer.name,
            .layer = as_layer({.m = gemm->m, .n = gemm->n, .k = gemm->k}),
            .repeats = repeats_of(layer, gemm->batch, 1)};
  }
  const auto& conv = std::get<ConvShape>(layer.work);
  const ConvOutput output = conv_output(conv);
  return {.name = layer.name,
          .layer = {.input_height = covered_input(output.height, conv.kernel_height, conv.stride),
                    .input_width = covered_input(output.width, conv.kernel_width, conv.stride),
                    .filter_height = conv.kernel_height,
                    .filter_width = conv.kernel_width,
                    .channels = conv.in_channels / conv.groups,
                    .filters = conv.out_channels / conv.groups,
                    .stride_height = conv.stride,
                    .stride_width = conv.stride},
          .repeats = repeats_of(layer, conv.batch, conv.groups)};
}

SystolicLayerRun run_systolic_layer(const SystolicArray& array, const SystolicLayer& layer,
                                    std::span<const Dataflow> tried) {
  ensure(!tried.empty(), "a layer runs with some dataflow");
  check_layer(layer);
  std::optional<SystolicLayerRun> best;
  for (const Dataflow dataflow : tried) {
    SystolicArray own = array;
    own.dataflow = dataflow;
    SystolicLayerRun run{.dataflow = dataflow, .compute = systolic_compute(own, layer.gemm())};
    if (systolic_trace_fits(own, layer)) run.memory = simulate_systolic(own, layer);
    const auto rank = [](const SystolicLayerRun& one) { return std::tuple(one.cycles(), dram_words(one)); };
    if (!best || rank(run) < rank(*best)) best = run;
  }
  return *best;
}

CoresRun run_on_cores(const SystolicArray& core, const SystolicLayer& layer, std::span<const Dataflow> tried,
                      const CoreGrid& grid) {
  ensure(!tried.empty(), "a layer runs with some dataflow");
  check_layer(layer);
  const GemmSize gemm = layer.gemm();
  std::optional<CoresRun> best;
  for (const Dataflow dataflow : tried) {
    SystolicArray own = core;
    own.dataflow = dataflow;
    const CoresRun run{.dataflow = dataflow,
                       .best = grid.rows ? best_partition_on_grid(own, gemm, *grid.rows, grid.cores / *grid.rows)
                                         : best_partition(own, gemm, grid.cores),
                       .one_core_cycles = systolic_compute(own, gemm).cycles};
    const auto rank = [](const CoresRun& one) { return std::tuple(one.best.cycles, one.best.words_per_core); };
    if (!best || rank(run) < rank(*best)) best = run;
  }
  return *best;
}

}  // namespace foretoken
