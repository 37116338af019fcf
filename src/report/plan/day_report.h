// The cost of a day, with replicas for its peak and with an autoscaler.
#pragma once

#include <string>

#include "base/json.h"
#include "plan/serving/day_plan.h"

namespace foretoken {

std::string day_plan_text(const DayPlan& plan);
Json day_plan_json(const DayPlan& plan);

}  // namespace foretoken
