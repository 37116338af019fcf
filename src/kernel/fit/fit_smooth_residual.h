// A Gaussian process through the rows of a small sweep.
#pragma once

#include <span>

#include "kernel/trees/smooth_residual.h"

namespace foretoken {

// `values` holds rows of `features` numbers, one after the other, of which one is the number of the call group;
// `targets` one number per row. Lengths, noise and what groups have in common are those with the least error on rows
// left out one at a time. Deterministic. Takes the cube of the number of rows.
SmoothResidual fit_smooth_residual(std::span<const float> values, size_t features, size_t group_feature,
                                   std::span<const float> targets);

}  // namespace foretoken
