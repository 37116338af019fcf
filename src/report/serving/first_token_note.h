// How far measured times to the first token may lie from simulated ones.
#pragma once

#include <string>

#include "serving/simulation/simulation_config.h"

namespace foretoken {

// A sentence where published runs lie farther from simulated ones than step times explain; else empty.
std::string first_token_note(const SimulationConfig& config);

}  // namespace foretoken
