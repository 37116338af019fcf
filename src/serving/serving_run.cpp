#include "serving/serving_run.h"

#include <algorithm>
#include <cmath>

#include "base/statistics.h"

namespace foretoken {
namespace {

class Observers : public RunObserver {
 public:
  explicit Observers(std::vector<RunObserver*> all) : all_(std::move(all)) {}
  void request_ended(const RequestRecord& record) override {
    for (RunObserver* one : all_) one->request_ended(record);
  }
  void step_ran(const StepRecord& step) override {
    for (RunObserver* one : all_) one->step_ran(step);
  }
  void token_gaps(Picoseconds gap, int64_t count) override {
    for (RunObserver* one : all_) one->token_gaps(gap, count);
  }
  bool watches(int64_t request) const override {
    return std::any_of(all_.begin(), all_.end(), [&](const RunObserver* one) { return one->watches(request); });
  }
  void request_stepped(const RequestStep& own, const StepRecord& step) override {
    for (RunObserver* one : all_) one->request_stepped(own, step);
  }
  void request_interrupted(int64_t request) override {
    for (RunObserver* one : all_) one->request_interrupted(request);
  }
  void drafts_verified(int64_t drafts, int64_t accepted) override {
    for (RunObserver* one : all_) one->drafts_verified(drafts, accepted);
  }

 private:
  std::vector<RunObserver*> all_;
};

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
  Observers all(std::move(observers));
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
