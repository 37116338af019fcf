// Works layouts out together with all who use the same store, and keeps the results there.
#pragma once

#include <memory>
#include <string>

#include "plan/serving/plan_evaluator.h"
#include "plan/store/result_store.h"

namespace foretoken {

// Names what results in a store depend on, besides their layouts. `facts` names what the question does not: where its
// numbers come from (ServingFacts).
std::string stored_question(const ServingQuestion& question, const Traffic& traffic, const std::string& facts);

// On so many threads, of so many processes; 0 = nobody knows how many. What it is given outlives it; the store is one
// of stored_question().
std::unique_ptr<PlanEvaluator> stored_evaluator(const ServingQuestion& question, const ServingFacts& facts,
                                                const Traffic& traffic, unsigned threads, ResultStore& store,
                                                int64_t processes = 0);

}  // namespace foretoken
