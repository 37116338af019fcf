// How many GPUs a training job needs, for people and for programs.
#pragma once

#include <string>

#include "base/json.h"
#include "plan/training_sizing.h"

namespace foretoken {

// Where no number of devices meets the goal: one sentence that says so.
std::string training_sizing_failure(const TrainingQuestion& question, const JobSizing& sizing);
// Begins with the number that was chosen, or with that sentence.
std::string training_sizing_text(const TrainingQuestion& question, const JobSizing& sizing);
Json training_sizing_json(const JobSizing& sizing);

}  // namespace foretoken
