// Which architectures to time next.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kernel/fewshot/adapted_device.h"

namespace foretoken {

// Positions of the candidates whose timings lower the expected squared error over all candidates most, one after the
// other, the most useful first. K. Chaloner, I. Verdinelli, "Bayesian Experimental Design: A Review", Statistical
// Science 10 (1995): A-optimality, here greedy and averaged over where predictions are wanted. Time grows with the
// square of the number of candidates.
std::vector<size_t> measure_next(const AdaptedDevice& device, std::span<const std::vector<double>> candidates,
                                 size_t count);
// The same before anything was timed.
std::vector<size_t> measure_first(const LatencyPrior& prior, std::span<const std::vector<double>> candidates,
                                  size_t count);

}  // namespace foretoken
