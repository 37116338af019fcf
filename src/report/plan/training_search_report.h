// Ranked training plans for people and for programs.
#pragma once

#include <string>

#include "base/json.h"
#include "plan/training_search.h"
#include "training/estimate/training_estimate.h"

namespace foretoken {

// `question` is what was asked, its plan the fastest one, with the flags that start it in Megatron-LM unless another
// framework is to run it.
std::string training_search_text(const TrainingQuestion& question, const TrainingSearchResult& result,
                                 bool with_megatron_flags = true);
Json training_search_json(const TrainingQuestion& question, const TrainingSearchResult& result);

// Of a search in which nothing fits: `question` has the plan that needs least. The text begins with the sentence.
std::string unfit_training_search_sentence(const TrainingQuestion& question, const NearestPlan& nearest);
std::string unfit_training_search_text(const TrainingQuestion& question, const NearestPlan& nearest, bool for_megatron);
Json unfit_training_search_json(const TrainingQuestion& question, const NearestPlan& nearest);

}  // namespace foretoken
