// Which single changes of the best layout lower its cost or raise its capacity. `report.sought` is there.
#pragma once

#include <string>

#include "base/json.h"
#include "report/plan/serving_plan.h"

namespace foretoken {

std::string goal_seek_text(const ServingPlanReport& report);
Json goal_seek_json(const ServingPlanReport& report);

}  // namespace foretoken
