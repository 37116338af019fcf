#include "compose/edge/edge_advice.h"

#include <algorithm>

#include <fmt/format.h>

namespace foretoken {
namespace {

constexpr double least_share = 0.03;  // less is not worth a change

// Sums over all calls of a model what could be saved.
struct Losses {
  double padding = 0;  // multiply-adds of rows and columns that tiles are filled up with
  double columns = 0;  // windows laid out as columns
  double strided = 0;  // the part of those with strides
};

double priced(const std::vector<EdgeTerm>& terms, std::initializer_list<std::string_view> names) {
  double sum = 0;
  for (const EdgeTerm& term : terms) {
    if (std::find(names.begin(), names.end(), term.name) != names.end()) sum += term.seconds;
  }
  return sum;
}

// The share of a kernel's tiles that is padding.
double padding_share(const EdgeKernel& kernel, const EdgeCore& core) {
  const auto waste = [&](int64_t rows, int64_t columns) {
    const auto up = [](int64_t size, int64_t tile) { return static_cast<double>((size + tile - 1) / tile * tile); };
    return 1 - static_cast<double>(rows) * static_cast<double>(columns) /
                   (up(rows, core.tile_rows) * up(columns, core.tile_columns));
  };
  if (const auto* p = std::get_if<ProductSizes>(&kernel.sizes)) return waste(p->m, p->n);
  if (const auto* c = std::get_if<ConvolutionSizes>(&kernel.sizes))
    return waste(c->out_channels / c->groups, c->out_height * c->out_width);
  return 0;
}

Losses losses_of(const EdgeLowering& lowering, const EdgePredictor& predictor) {
  Losses losses;
  for (const EdgeStep& step : lowering.steps) {
    for (const EdgeCall& call : step.calls) {
      if (call.kernel.kind == EdgeKernelKind::depthwise || !predictor.knows(call.kernel)) continue;
      const std::vector<EdgeTerm> terms = predictor.kernel_terms(call.kernel);
      const auto count = static_cast<double>(call.count);
      losses.padding += count * priced(terms, {"tile"}) * padding_share(call.kernel, predictor.core);
      losses.columns += count * priced(terms, {"copy", "copy_row", "gather", "gather_row"});
      losses.strided += count * priced(terms, {"gather", "gather_row"});
    }
  }
  return losses;
}

std::string kind_advice(const EdgeKindTime& time, double share) {
  const double of_best = time.seconds > 0 ? 100 * time.least_seconds / time.seconds : 0;
  switch (time.kind) {
    case EdgeKernelKind::depthwise:
      return fmt::format(
          "depthwise convolutions take {:.0f}% of the time at {:.0f}% of the core's best rate, because each input is "
          "used only a few times; fewer channels, or a dense convolution in the first layers, may be faster",
          100 * share, of_best);
    case EdgeKernelKind::transpose:
      return fmt::format("transposes take {:.0f}% of the time: keep one layout through reshapes and channel shuffles",
                         100 * share);
    case EdgeKernelKind::gelu:
    case EdgeKernelKind::layer_norm:
      return fmt::format(
          "{} takes {:.0f}% of the time as a chain of operators: export it in the form that the runtime fuses",
          edge_kind_name(time.kind), 100 * share);
    case EdgeKernelKind::fused_gelu:
      return fmt::format(
          "gelu takes {:.0f}% of the time, nearly all of it in erf: relu or hard swish would cost a tenth",
          100 * share);
    case EdgeKernelKind::gemv:
      return fmt::format(
          "matrix products with one row take {:.0f}% of the time, because the weights are read for a single input: use "
          "a batch",
          100 * share);
    case EdgeKernelKind::concat:
    case EdgeKernelKind::traffic:
    case EdgeKernelKind::add:
    case EdgeKernelKind::channel_scale:
      return fmt::format(
          "{} ({} calls) moves {:.1f} MB and takes {:.0f}% of the time: nothing fuses it with its neighbors",
          edge_kind_name(time.kind), time.calls, time.work.bytes().value() * 1e-6, 100 * share);
    default:
      return "";
  }
}

}  // namespace

std::vector<EdgeAdvice> edge_advice(const EdgeLowering& lowering, const EdgePredictor& predictor,
                                    const EdgeModelEstimate& estimate) {
  std::vector<EdgeAdvice> advice;
  const double all = estimate.seconds.value;
  const auto add = [&](double seconds, std::string text) {
    if (seconds >= least_share * all && !text.empty()) advice.push_back({seconds / all, std::move(text)});
  };
  for (const EdgeKindTime& time : estimate.kinds) add(time.seconds, kind_advice(time, time.seconds / all));
  const Losses losses = losses_of(lowering, predictor);
  add(losses.padding,
      fmt::format(
          "{:.0f}% of the time multiplies padding: channels and positions do not fill the register tile of {} x {}",
          100 * losses.padding / all, predictor.core.tile_rows, predictor.core.tile_columns));
  add(losses.columns, fmt::format("{:.0f}% of the time rearranges windows into columns ({:.0f}% with strides): 1x1 "
                                  "windows with stride 1 need no rearranging",
                                  100 * losses.columns / all, 100 * losses.strided / all));
  double nodes = estimate.call_seconds + estimate.dispatch_seconds;
  if (predictor.calls) {
    const double constants = constant_bytes(lowering);
    for (const EdgeKindTime& time : estimate.kinds)
      nodes += static_cast<double>(time.calls) * predictor.dispatch_seconds({.kind = time.kind}, constants);
  }
  add(nodes,
      fmt::format(
          "{:.0f}% of the time is overhead of the runtime per operator: use fewer, larger operators or a larger batch",
          100 * nodes / all));
  std::stable_sort(advice.begin(), advice.end(),
                   [](const EdgeAdvice& a, const EdgeAdvice& b) { return a.share > b.share; });
  return advice;
}

}  // namespace foretoken
