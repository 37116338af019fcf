// The answer as a decision: a row for every device on offer with every engine, its best layout or why there is none.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "report/parts/device_notes.h"
#include "report/plan/serving_plan.h"

namespace foretoken {

struct DecisionRow {
  const TriedEngine* tried = nullptr;  // null of a layout on two kinds of devices
  const PlanPoint* point = nullptr;    // its best layout; null = none keeps the limits
  bool serves = false;                 // what is asked, the rate included
  bool is_best = false;
  bool is_tied = false;  // with the best, within prediction error
  std::string reason;    // why it does not serve what is asked; else empty
};

// Those that serve, best first; then those that keep the limits at a lower rate; then the others, in the question's
// order.
std::vector<DecisionRow> decision_rows(const ServingPlanReport& report);

// A run and the layout it is of.
struct NearRun {
  const PlanPoint* point = nullptr;
  const PlanRun* run = nullptr;
};
// The simulated run that comes nearest to keeping the limits, of one device and engine or of all; null = there is none.
NearRun nearest_run(const ServingPlanReport& report, const TriedEngine* of = nullptr);
// It keeps the limits itself; where no layout is said to, other requests of the same traffic may break them.
bool is_within_limits(const ServingQuestion& question, const PlanRun& run);

// What kernel times of the layout rest on: "this GPU", "other GPUs" or "spec sheet".
std::string rests_on_text(const ServingQuestion& question, const ServingLayout& layout);

// Devices known by their sheets, tensor sizes that are not tried.
DeviceNotes plan_device_notes(const ServingPlanReport& report);

}  // namespace foretoken
