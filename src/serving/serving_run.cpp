#include "serving/serving_run.h"

#include <algorithm>
#include <cmath>

#include "base/statistics.h"
#include "serving/results/observer_list.h"

namespace foretoken {
namespace {

struct Outcome {
  SimulationTotals totals;
  ServingMetrics metrics;
};

Outcome run_once(const ServingRunRequest& request, StepBound bound, uint64_t seed,
                 std::vector<RunObserver*> observers) {
  SimulationConfig config = request.config;
  config.bound = bound;
  config.seed = seed;
  const std::unique_ptr<RequestSource> source = request.load(seed);
  MetricsCollector collector(source->next_arrival().value_or(0), request.goals);
  observers.push_back(&collector);
  ObserverList all(std::move(observers));
  const SimulationTotals totals = simulate(config, *source, all);
  return {.totals = totals, .metrics = collector.metrics(request.percentiles)};
}

}  // namespace

Headline ServingRun::headline(const std::function<double(const ServingMetrics&)>& number) const {
  const double value = number(metrics);
  double least = value, most = value;
  for (const ServingMetrics& bound : at_bounds) {
    least = std::min(least, number(bound));
    most = std::max(most, number(bound));
  }
  std::vector<double> seeds = {value};
  for (const ServingMetrics& other : other_seeds) seeds.push_back(number(other));
  const double from_seeds = 1.645 * standard_deviation(seeds);
  return {.value = value,
          .low = std::max(0.0, value - std::sqrt((value - least) * (value - least) + from_seeds * from_seeds)),
          .high = value + std::sqrt((most - value) * (most - value) + from_seeds * from_seeds)};
}

ServingRun run_serving(const ServingRunRequest& request) {
  TimeSeries series;
  std::vector<RunObserver*> observers = request.observers;
  observers.push_back(&series);
  const uint64_t seed = request.config.seed;
  const Outcome own = run_once(request, request.config.bound, seed, std::move(observers));
  ServingRun result{.totals = own.totals,
                    .metrics = own.metrics,
                    .at_bounds = {},
                    .other_seeds = {},
                    .interval_s = series.interval_s(),
                    .series = series.points(),
                    .most_kv_blocks = series.most_kv_blocks()};
  if (request.step_bounds) {
    for (const StepBound bound : {StepBound::low, StepBound::high}) {
      result.at_bounds.push_back(run_once(request, bound, seed, {}).metrics);
    }
  }
  for (int64_t i = 1; i <= request.more_seeds; ++i) {
    result.other_seeds.push_back(run_once(request, request.config.bound, seed + static_cast<uint64_t>(i), {}).metrics);
  }
  return result;
}

}  // namespace foretoken
