// The best layouts for a question: all are judged by closed forms, the promising ones simulated shortly, the best few
// at length.
#pragma once

#include <functional>
#include <string>

#include "plan/serving/layout_search.h"
#include "plan/serving/search_result.h"

namespace foretoken {

// Deterministic. Each device is searched by itself: another one on offer changes nothing about it. Layouts whose scores
// are as near as bisection can tell are ranked by their cost, then those without host memory below their caches first,
// then by their speed for a user. `tell` hears what is being done; `check_wanted` is called often. Where the evaluator
// or that throws SearchStopped, the answer is made of what was simulated until then; where nothing was, it is thrown
// here too.
ServingSearchResult search_serving_layouts(const ServingQuestion& question, PlanEvaluator& evaluator,
                                           const SearchLimits& limits = {},
                                           const std::function<void(const std::string&)>& tell = {},
                                           const std::function<void()>& check_wanted = {});

}  // namespace foretoken
