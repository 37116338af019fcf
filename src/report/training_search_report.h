// Ranked training plans for people and for programs.
#pragma once

#include <string>

#include "base/json.h"
#include "plan/training_search.h"
#include "training/training_estimate.h"

namespace foretoken {

// `question` is what was asked, its plan the fastest one.
std::string training_search_text(const TrainingQuestion& question, const TrainingSearchResult& result);
Json training_search_json(const TrainingQuestion& question, const TrainingSearchResult& result);

}  // namespace foretoken
