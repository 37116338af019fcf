// Several models planned on the same devices, for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "plan/serving/shared_devices.h"

namespace foretoken {

struct SharedPlanReport {
  const SharedPlan& plan;
  std::vector<const Traffic*> traffic;  // of each model
};

std::string shared_plan_sentence(const SharedPlanReport& report);

// What all take together, then each model's sentence and the lines that start it.
std::string shared_plan_text(const SharedPlanReport& report);
Json shared_plan_json(const SharedPlanReport& report);

}  // namespace foretoken
