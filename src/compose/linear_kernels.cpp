#include "compose/linear_kernels.h"

#include <algorithm>

namespace foretoken {
namespace {

constexpr int64_t most_tuned_rows = 256;

bool scale_known_beforehand(Scheme scheme) {
  return scheme == Scheme::fp8 || scheme == Scheme::nvfp4;
}

KernelEstimate without_cast(const GemmShape& shape, std::string_view variant, const KernelPredictor& predictor) {
  KernelEstimate whole = predictor.estimate(shape, variant);
  if (!scale_known_beforehand(shape.scheme)) return whole;
  const double cast = 2 * predictor.estimate(QuantizeShape{.m = shape.m, .k = shape.k}).seconds.value;
  whole.seconds = scaled(whole.seconds, std::max(0.5, 1 - cast / whole.seconds.value));
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
