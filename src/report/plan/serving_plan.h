// A search over serving layouts, as every part of its report is given it.
#pragma once

#include <span>

#include "plan/serving/goal_seek.h"
#include "plan/serving/serving_search.h"

namespace foretoken {

struct ServingPlanReport {
  const ServingQuestion& question;
  const Traffic& traffic;
  const ServingSearchResult& result;
  bool sought = false;                         // changes of the winner were sought
  std::span<const SoughtChange> changes = {};  // those that gain
};

}  // namespace foretoken
