#include "kernel/edge/edge_predictor.h"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "base/portable_math.h"

namespace foretoken {
namespace {

// Kinds whose prices serve where a sweep lacks a kind's own.
EdgeKernelKind stand_in(EdgeKernelKind kind) {
  switch (kind) {
    case EdgeKernelKind::depthwise:
      return EdgeKernelKind::convolution;
    case EdgeKernelKind::gemv:
    case EdgeKernelKind::batched_matmul:
      return EdgeKernelKind::linear;
    case EdgeKernelKind::convolution:
    case EdgeKernelKind::linear:
    case EdgeKernelKind::empty:
      return kind;
    default:
      return EdgeKernelKind::traffic;
  }
}

bool within(const EdgeKindPrices& kind, std::span<const double> amounts) {
  for (size_t i = 0; i < amounts.size(); ++i) {
    if (amounts[i] > 0 && (amounts[i] < kind.least[i] || amounts[i] > kind.most[i])) return false;
  }
  return true;
}

// The kind that a kernel is priced as; nothing when the sweep has neither its own nor one that can stand in.
std::optional<EdgeKernelKind> priced_kind(const EdgePredictor& predictor, EdgeKernelKind kind) {
  for (const EdgeKernelKind candidate : {kind, stand_in(kind)}) {
    if (predictor.kinds.contains(candidate)) return candidate;
  }
  return std::nullopt;
}

// Seconds of a kernel between others: the work that it is priced for, without the call and the copy of its output, and
// the runtime's time for its operators. A quarter of the work remains whatever the copy is said to cost.
double seconds_within_model(const EdgePredictor& predictor, const EdgeCallCosts& calls, const EdgeKernel& kernel) {
  const EdgeKernelKind priced_as = priced_kind(predictor, kernel.kind).value();
  const double call = predictor.kinds.at(priced_as).prices_ns.front() * 1e-9;
  const double work = predictor.kernel_seconds(kernel).value - call;
  const double bytes = edge_work(kernel).written.value(), elements = bytes / bytes_per_element(DType::fp32);
  const CacheSplit split = cache_split(elements, 2 * bytes, predictor.core);
  const double copy = (split.near * calls.copy_near_ns + split.far * calls.copy_far_ns) * 1e-9;
  return std::max(work - copy, work / 4) + edge_operator_count(kernel.kind) * calls.node_ns * 1e-9;
}

}  // namespace

bool EdgePredictor::knows(const EdgeKernel& kernel) const {
  return priced_kind(*this, kernel.kind).has_value();
}

Estimate EdgePredictor::kernel_seconds(const EdgeKernel& kernel) const {
  const std::optional<EdgeKernelKind> priced_as = priced_kind(*this, kernel.kind);
  if (!priced_as) {
    throw InputError({.source = fmt::format("edge predictor of {}, {}", device, runtime),
                      .value = std::string(edge_kind_name(kernel.kind)),
                      .expected = "a kind of kernel that its sweep has measured"});
  }
  const EdgeKindPrices& kind = kinds.at(*priced_as);
  const EdgeLaw& law = edge_law(*priced_as);
  std::array<double, most_edge_prices> amounts{};
  const std::span<double> own(amounts.data(), law.prices.size());
  law.amounts(kernel, core, own);
  const double seconds = priced_seconds(own, kind.prices_ns);
  const bool known = priced_as == kernel.kind && within(kind, own);
  // Nobody has measured how wrong a price is outside its sweep: twice as wrong is assumed.
  const double factor = portable_exp(kind.half_width * (known ? 1 : 2));
  return {.value = seconds,
          .low = seconds / factor,
          .high = seconds * factor,
          .kind = known ? Confidence::interpolated : Confidence::extrapolated};
}

Estimate EdgePredictor::model_seconds(std::span<const EdgeKernel> kernels) const {
  const Estimate call = kernel_seconds({.kind = EdgeKernelKind::empty});
  std::vector<Estimate> parts = {call};
  for (const EdgeKernel& kernel : kernels) {
    const Estimate alone = kernel_seconds(kernel);
    parts.push_back(calls ? scaled(alone, seconds_within_model(*this, *calls, kernel) / alone.value) : alone);
  }
  // Kernels share prices, so that they err together.
  return sum_of_correlated(parts);
}

}  // namespace foretoken
