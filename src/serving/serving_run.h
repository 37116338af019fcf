// One simulated benchmark: the run itself, the same with slower and faster steps, and with other seeds.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "serving/results/metrics.h"
#include "serving/results/time_series.h"
#include "serving/simulation/simulation.h"

namespace foretoken {

struct ServingRunRequest {
  SimulationConfig config;  // its seed and bound are those of the run itself
  LoadMaker load;
  LatencyGoals goals;
  std::vector<double> percentiles = {99};
  bool step_bounds = true;              // also run at both ends of the step times' intervals, and of the acceptance's
  int64_t more_seeds = 0;               // also run with so many other seeds
  std::vector<RunObserver*> observers;  // of the run itself; not owned
};

// A headline of a run with its 90% interval.
struct Headline {
  double value = 0, low = 0, high = 0;
};

struct ServingRun {
  SimulationTotals totals;
  ServingMetrics metrics;
  std::vector<ServingMetrics> at_bounds;  // low and high step times; empty where not asked for
  // With low and with high values of what is not known and matters; empty where it is known or does not.
  std::vector<ServingMetrics> at_acceptance;   // of drafts
  std::vector<ServingMetrics> at_sending;      // what it costs to send a piece of an answer
  std::vector<ServingMetrics> at_first_token;  // if they come so much earlier or later: FirstTokenDoubt
  std::vector<ServingMetrics> other_seeds;
  double interval_s = 0;  // of `series`
  std::vector<TimePoint> series;
  std::vector<int64_t> most_kv_blocks;  // by replica: TimeSeries

  bool has_intervals() const { return !at_bounds.empty() || !other_seeds.empty(); }
  // Any number of the metrics. Errors of step times go the same way in all steps, so their bounds are those of the
  // run; those of an unknown acceptance, of an unknown cost of sending, of doubt about first tokens (goodput apart)
  // and 1.645 standard deviations of seeds are added in quadrature. No number of the metrics is below 0.
  Headline headline(const std::function<double(const ServingMetrics&)>& number) const;
};

// Of the pools where they are apart, else the widest of the engines.
FirstTokenDoubt first_token_doubt(const SimulationConfig& config);

ServingRun run_serving(const ServingRunRequest& request);
// Of the run itself alone, without its series: what searches ask for many times.
ServingMetrics run_metrics(const ServingRunRequest& request);

}  // namespace foretoken
