// A step as one of few sizes, for what changes slowly with them: power, demand of a device.
#pragma once

#include <array>
#include <cstdint>

#include "model/step.h"
#include "serving/steps/step_times.h"

namespace foretoken {

// Tokens of prompts, decodes with their drafts, and the mean context of these. Drafts count as decodes; together they
// read the same cache.
std::array<double, 3> step_sizes(const StepBatch& batch);

// The step of such sizes: one prompt with all its tokens beside equal decodes. At least one token.
StepRequest equal_step(const std::array<int64_t, 3>& sizes, DType kv_dtype);

}  // namespace foretoken
