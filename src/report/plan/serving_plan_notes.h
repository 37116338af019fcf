// What the reader of a serving plan should know beside its figures.
#pragma once

#include <string>
#include <vector>

#include "report/plan/serving_plan.h"

namespace foretoken {

// Sentences on the search, what was assumed, the model, its formats, and engines that were not tried.
std::vector<std::string> serving_plan_notes(const ServingPlanReport& report);

}  // namespace foretoken
