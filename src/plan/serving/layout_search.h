// The search among the layouts of one device, or of those on two kinds of devices.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plan/serving/layout_candidates.h"
#include "plan/serving/search_result.h"

namespace foretoken {

struct SearchLimits {
  size_t quick = 96;         // most layouts of a device to simulate shortly
  size_t full = 6;           // most of a device to simulate at length, unless none of them serves the rate
  bool closed_form = false;  // none of that: the best layout of each kind by closed forms
  size_t round = 8;          // simulated before the next are chosen; the same for any number of threads
};

struct SearchState {
  std::optional<LayoutScore> to_beat;  // what was found elsewhere
  bool is_stopped = false;             // nothing more is simulated
};

// Points in `result.ranking` are those that serve, in no order.
ServingSearchResult search_part(const ServingQuestion& question, PlanEvaluator& evaluator, const SearchLimits& limits,
                                const std::function<void(const std::string&)>& tell, const SearchedPart& part,
                                const SearchState& state);

}  // namespace foretoken
