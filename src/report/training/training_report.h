// A training estimate for people and for programs.
#pragma once

#include <string>

#include "base/json.h"
#include "training/estimate/training_estimate.h"

namespace foretoken {

Json to_json(const TrainingPlan& plan);

// One sentence where the plan does not fit in memory; empty where it does.
std::string training_failure(const TrainingQuestion& question, const TrainingEstimate& estimate);

// Begins with the failure, where there is one.
std::string training_text(const TrainingQuestion& question, const TrainingEstimate& estimate);
Json training_json(const TrainingQuestion& question, const TrainingEstimate& estimate);

}  // namespace foretoken
