#include "compose/linear_kernels.h"

#include <algorithm>

namespace foretoken {
namespace {

constexpr int64_t most_tuned_rows = 256;

// Passes over the input that a measured multiply holds and an engine does not run: fp8 was measured with a scale for
// each token, found first; the scale of nvfp4 was known.
int casts_measured_with(Scheme scheme) {
  return scheme == Scheme::fp8 ? 2 : scheme == Scheme::nvfp4 ? 1 : 0;
}

KernelEstimate without_cast(const GemmShape& shape, std::string_view variant, const KernelPredictor& predictor) {
  KernelEstimate whole = predictor.estimate(shape, variant);
  const int casts = casts_measured_with(shape.scheme);
  const bool holds_cast = whole.tier != Tier::roofline && whole.tier != Tier::mapped;  // those count the multiply alone
  if (casts == 0 || !holds_cast) return whole;
  const double cast = casts * predictor.estimate(QuantizeShape{.m = shape.m, .k = shape.k}).seconds.value;
  // Whatever was measured, multiply units and the weights' way from DRAM bound the rest.
  const double least = std::max(whole.compute.value() * whole.wave_efficiency,
                                (whole.work.weights_read / predictor.device().memory_bandwidth->value).value());
  const double rest = std::max({0.5, 1 - cast / whole.seconds.value, least / whole.seconds.value});
  whole.seconds = scaled(whole.seconds, std::min(1.0, rest));
  whole.seconds.low = std::max(whole.seconds.low, std::min(least, whole.seconds.value));
  return whole;
}

}  // namespace

KernelEstimate linear_estimate(const GemmShape& shape, std::string_view variant, const KernelPredictor& predictor,
                               const Stack& stack) {
  if (!stack.tuned_linears) return predictor.estimate(shape, variant);
  KernelEstimate best = without_cast(shape, variant, predictor);
  for (int64_t rows = 8; rows <= most_tuned_rows; rows *= 2) {
    if (rows <= shape.m) continue;
    GemmShape larger = shape;
    larger.m = rows;
    const KernelEstimate other = without_cast(larger, variant, predictor);
    if (other.seconds.value < best.seconds.value) best.seconds = other.seconds;
  }
  return best;
}

}  // namespace foretoken
