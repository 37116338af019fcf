// The answer of a search over serving layouts as one page: the winner in full, and what it was chosen from.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/page/serving_parts.h"
#include "report/page/trust_panel.h"
#include "report/plan/serving_plan_report.h"

namespace foretoken {

// A layout simulated to be looked at.
struct ShownLayout {
  double rate = 0;                  // requests/s of `run`
  ServingRun run;                   // with intervals
  std::vector<double> percentiles;  // those of its metrics
  LatencyGoals goals;
  LatencyCurves curves;
  std::vector<RatePoint> rates;    // the same requests at other rates, rising
  std::vector<TypicalStep> steps;  // empty where it drafts: such steps have no operators
  ServingMemory memory;            // of an engine, of one that decodes where there are two kinds
  Device device;                   // of the first pool
};

struct ServingPlanPage {
  const ServingPlanReport& report;
  std::optional<ShownLayout> winner;  // nothing where no layout serves what is asked
  Trust trust;
  std::string command;  // that made it
};

std::string serving_plan_page_html(const ServingPlanPage& page);

}  // namespace foretoken
