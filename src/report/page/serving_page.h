// A serving run as one page: the answer, latencies, how the run went, where time, memory, energy and money go, and how
// far to trust it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/page/cost_parts.h"
#include "report/page/serving_parts.h"
#include "report/page/trust_panel.h"
#include "report/serving/serving_report.h"

namespace foretoken {

struct ServingPage {
  const ServingReport& report;
  const LatencyCurves& curves;
  Device device;  // of the first kind of replica
  LatencyGoals goals;
  std::vector<RatePoint> rates;               // rising; empty where the load has no rate
  std::vector<TypicalStep> steps;             // empty where steps have no operators
  std::optional<RunExplanation> explanation;  // nothing where no request completed, or replicas come and go
  std::optional<ServingMemory> memory;        // of the first kind of replica
  std::optional<EnergyReport> energy;         // nothing where a board's power is not known
  std::string energy_remark;                  // how its run differs from the one shown, or why there is none
  std::optional<RentedWork> rent;             // where there is no energy, which has it
  Trust trust;
  std::string command;  // that made it
  std::string more;     // the same as text for a terminal
};

// "Llama-3.1-8B on 1 h100_sxm serves 4 requests/s with a median TTFT of ...": one sentence with intervals.
std::string serving_sentence(const ServingReport& report);

std::string serving_page_html(const ServingPage& page);

}  // namespace foretoken
