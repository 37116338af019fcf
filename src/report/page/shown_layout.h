// A layout that a search found, run at length for people to look at.
#pragma once

#include "base/json.h"
#include "plan/serving/serving_planner.h"
#include "report/page/serving_plan_page.h"

namespace foretoken {

// One run of the layout, long enough to be looked at, as a Chrome trace.
Json layout_trace(const ServingPlanner& planner, const ServingLayout& layout, double rate);
// Runs at length: at this rate with intervals, and at shares of the layout's capacity.
ShownLayout shown_layout(const ServingPlanner& planner, const ServingLayout& layout, double rate, double capacity);

}  // namespace foretoken
