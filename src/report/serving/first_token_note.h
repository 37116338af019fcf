// How much longer than simulated requests may wait for their first tokens.
#pragma once

#include <string>

#include "serving/simulation/simulation_config.h"

namespace foretoken {

// A sentence where the interval of TTFT is wide because published runs waited for more than is simulated; else empty.
std::string first_token_note(const SimulationConfig& config);

}  // namespace foretoken
