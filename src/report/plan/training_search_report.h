// Ranked training plans for people and for programs.
#pragma once

#include <span>
#include <string>

#include "base/json.h"
#include "plan/mixed_training_search.h"
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

// Of a job on several kinds of GPU; the pools' questions have the fastest plan.
std::string mixed_search_text(std::span<const TrainingPool> pools, const MixedSearchResult& result);
Json mixed_search_json(std::span<const TrainingPool> pools, const MixedSearchResult& result);

}  // namespace foretoken
