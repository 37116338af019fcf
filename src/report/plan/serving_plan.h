// A search over serving layouts, as every part of its report is given it.
#pragma once

#include "plan/serving/day_plan.h"
#include "plan/serving/goal_seek.h"
#include "plan/serving/layout_explanation.h"
#include "plan/serving/serving_search.h"

namespace foretoken {

struct ServingPlanReport {
  const ServingQuestion& question;
  const Traffic& traffic;
  const ServingSearchResult& result;
  const SoughtGoals* sought = nullptr;             // changes of the winner; null = nobody asked
  const LayoutExplanation* explanation = nullptr;  // of the winner; null = there is none
  const DayPlan* day = nullptr;                    // null = nobody asked
};

}  // namespace foretoken
