// A fleet over a run: replicas, GPU-hours, failures.
#pragma once

#include <string>

#include "base/json.h"
#include "serving/fleet/fleet.h"

namespace foretoken {

struct FleetReport {
  const FleetConfig& config;
  const FleetTotals& totals;
  double end_s = 0;  // of the run
};

std::string fleet_text(const FleetReport& report);
Json fleet_json(const FleetReport& report);

}  // namespace foretoken
