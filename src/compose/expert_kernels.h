// Routed experts as engines run them, where that differs from the kernel that was measured alone.
#pragma once

#include <optional>
#include <string_view>

#include "compose/stack.h"
#include "kernel/kernel.h"
#include "model/shapes.h"

namespace foretoken {

// With Stack::tuned_experts the engine tries its kernels beforehand and keeps the fastest: experts with one fp8 scale
// per tensor take no longer than with a scale per block, which is the same multiply and more. Measurements of Hopper
// have only an untuned kernel for the former, at a third of the speed of the latter.
KernelEstimate expert_estimate(const MoeShape& shape, std::string_view variant, const KernelPredictor& predictor,
                               const Stack& stack);

// The kernel for a scale per block that such an engine takes instead of one of so many seconds for a scale per tensor;
// nothing where the formats are others, or none is faster.
struct TunedExperts {
  Estimate seconds;
  std::string_view variant;  // empty = the usual one
};
std::optional<TunedExperts> tuned_experts(const MoeShape& shape, double untuned_seconds,
                                          const KernelPredictor& predictor);

}  // namespace foretoken
