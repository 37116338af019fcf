// What a fit of training stacks found.
#pragma once

#include <string>

#include "base/json.h"
#include "training/fit/fit_training.h"

namespace foretoken {

std::string training_fit_text(const TrainingFit& fit);
Json training_fit_json(const TrainingFit& fit);
std::string fitted_runs_csv(const TrainingFit& fit);  // every run, measured and predicted

}  // namespace foretoken
