// The three constants of a vector unit that no data sheet gives, from measured programs.
#pragma once

#include <span>

#include "accelerator/systolic/chip.h"
#include "accelerator/systolic/tpuv3_rows.h"

namespace foretoken {

// Launch cycles, and operations per element of softmax and layer norm, with the least squared relative error over the
// rows. A constant that no row speaks of keeps its value; none falls below zero.
VectorUnit fit_vector_unit(const SystolicChip& chip, std::span<const TpuV3Row> rows);

}  // namespace foretoken
