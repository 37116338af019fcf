// A training estimate for people and for programs.
#pragma once

#include <string>

#include "base/json.h"
#include "training/training_estimate.h"

namespace foretoken {

Json to_json(const TrainingPlan& plan);

std::string training_text(const TrainingQuestion& question, const TrainingEstimate& estimate);
Json training_json(const TrainingQuestion& question, const TrainingEstimate& estimate);

}  // namespace foretoken
