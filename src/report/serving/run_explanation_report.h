// Where the time of a run goes, for people and programs.
#pragma once

#include <string>

#include "base/json.h"
#include "serving/results/run_explanation.h"

namespace foretoken {

// "a p99 TTFT of 412 ms consists of 300 ms in the queue, ... . GPUs run steps 93% of the time ...".
std::string run_explanation_words(const RunExplanation& explanation);
// Adds its numbers to an object.
void set_run_explanation(Json& json, const RunExplanation& explanation);

}  // namespace foretoken
