#include "compose/expert_kernels.h"

namespace foretoken {

KernelEstimate expert_estimate(const MoeShape& shape, std::string_view variant, const KernelPredictor& predictor,
                               const Stack& stack) {
  KernelEstimate best = predictor.estimate(shape, variant);
  if (!stack.tuned_experts || shape.scheme != Scheme::fp8) return best;
  MoeShape blocks = shape;
  blocks.scheme = Scheme::fp8_block;
  for (const std::string_view other : {std::string_view(), std::string_view("fi_cutlass")}) {
    const KernelEstimate tried = predictor.estimate(blocks, other);
    if (tried.seconds.value < best.seconds.value) best.seconds = tried.seconds;
  }
  return best;
}

}  // namespace foretoken
