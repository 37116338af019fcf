// What became of every device on offer with every engine: those without a simulated layout have a reason.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "report/device_notes.h"
#include "report/serving_plan.h"

namespace foretoken {

struct UnshownEngine {
  std::string device, engine;
  std::string reason;
  std::optional<double> most_requests_per_s = {};  // that its layouts cannot exceed, where that rules them out
};

// Those of which no layout was simulated that serves anything.
std::vector<UnshownEngine> unshown_engines(const ServingPlanReport& report);

// One entry for each device and engine: how many layouts it has, how many were simulated, the best of them, or why
// none.
Json tried_engines_json(const ServingPlanReport& report);

// Devices known by their sheets, tensor sizes that are not tried.
DeviceNotes plan_device_notes(const ServingPlanReport& report);

}  // namespace foretoken
