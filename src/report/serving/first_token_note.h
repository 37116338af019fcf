// How far measured times to the first token may lie from simulated ones.
#pragma once

#include <string>

#include "plan/serving/serving_question.h"
#include "serving/simulation/simulation_config.h"

namespace foretoken {

// A sentence where published runs lie farther from simulated ones than step times explain; else empty.
std::string first_token_note(const SimulationConfig& config);
// The same of a plan for limits on TTFT or latency, which is made for simulated times.
std::string first_token_note(const ServingQuestion& question, const ServingLayout& layout);

}  // namespace foretoken
