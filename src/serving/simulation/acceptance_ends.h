// Runs with drafts whose acceptance nobody knows: the same with that of either end of its interval.
#pragma once

#include <cstddef>
#include <optional>

#include "serving/simulation/simulation.h"

namespace foretoken {

// Engines whose drafts are accepted as often as at one end of the interval: 0 = low, 1 = high. Nothing where the
// acceptance is known.
std::optional<SimulationConfig> at_acceptance_end(SimulationConfig config, size_t end);

}  // namespace foretoken
