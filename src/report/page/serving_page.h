// A serving run as one page: the answer, latencies, how the run went, where the time and the memory go.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compose/serving_memory.h"
#include "report/serving_breakdown.h"
#include "report/serving_report.h"
#include "serving/results/latency_curves.h"

namespace foretoken {

// The same load at another rate.
struct RatePoint {
  double rate = 0;  // requests per second
  ServingMetrics metrics;
};

struct ServingPage {
  const ServingReport& report;
  const LatencyCurves& curves;
  LatencyGoals goals;
  std::vector<RatePoint> rates;         // rising; empty where the load has no rate
  std::vector<TypicalStep> steps;       // empty where steps have no operators
  std::optional<ServingMemory> memory;  // of the first kind of replica
  std::string command;                  // that made it
  std::string more;                     // what the command says beside: energy, cost
};

// "Llama-3.1-8B on 1 h100_sxm serves 4 requests/s with a median TTFT of ...": one sentence with intervals.
std::string serving_sentence(const ServingReport& report);

std::string serving_page_html(const ServingPage& page);

}  // namespace foretoken
