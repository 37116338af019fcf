#include "compose/expert_kernels.h"

namespace foretoken {
namespace {

// Triton's kernels are for the tokens of all ranks in plain formats. What a dispatch brought and packed weights have
// kernels of their own, whatever a stack names.
bool takes_triton(const MoeShape& shape) {
  const bool plain = shape.scheme == Scheme::bf16 || shape.scheme == Scheme::fp16 || shape.scheme == Scheme::fp8 ||
                     shape.scheme == Scheme::fp8_block;
  return plain && !shape.received;
}

}  // namespace

KernelEstimate expert_estimate(const MoeShape& shape, std::string_view variant, const KernelPredictor& predictor,
                               const Stack& stack) {
  if (variant == "triton" && !takes_triton(shape)) variant = {};
  KernelEstimate best = predictor.estimate(shape, variant);
  if (!stack.tuned_experts) return best;
  if (const auto tuned = tuned_experts(shape, best.seconds.value, predictor)) best.seconds = tuned->seconds;
  return best;
}

std::optional<TunedExperts> tuned_experts(const MoeShape& shape, double untuned_seconds,
                                          const KernelPredictor& predictor) {
  if (shape.scheme != Scheme::fp8) return std::nullopt;
  MoeShape blocks = shape;
  blocks.scheme = Scheme::fp8_block;
  std::optional<TunedExperts> best;
  for (const std::string_view variant : {std::string_view(), std::string_view("fi_cutlass")}) {
    const KernelEstimate tried = predictor.estimate(blocks, variant);
    if (tried.seconds.value >= (best ? best->seconds.value : untuned_seconds)) continue;
    best = {.seconds = tried.seconds, .variant = variant};
  }
  return best;
}

}  // namespace foretoken
