// What is said where no layout serves what is asked: how near they come, and what it would take.
#pragma once

#include <string>

#include "base/json.h"
#include "report/plan/serving_plan.h"

namespace foretoken {

std::string unmet_plan_text(const ServingPlanReport& report);
// The same as numbers: the least of each latency, the most requests/s, the devices that the rate would take.
Json reachable_json(const ServingPlanReport& report);

}  // namespace foretoken
