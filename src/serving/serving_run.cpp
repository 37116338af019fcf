#include "serving/serving_run.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/normal_distribution.h"
#include "base/portable_math.h"
#include "base/statistics.h"
#include "compose/calibrated_stack.h"
#include "serving/results/observer_list.h"
#include "serving/simulation/acceptance_ends.h"

namespace foretoken {
namespace {

struct Outcome {
  SimulationTotals totals;
  ServingMetrics metrics;
};

// With slower steps comes a slower way to the engine, where calibration tells how well it is known.
FrontCosts at_bound(FrontCosts front, StepBound bound) {
  if (bound == StepBound::value || front.latency_sd == 0) return front;
  const double half = normal_half_width_90 * front.latency_sd;
  front.latency = front.latency * portable_exp(bound == StepBound::low ? -half : half);
  return front;
}

Outcome run_once(const ServingRunRequest& request, StepBound bound, uint64_t seed,
                 std::vector<RunObserver*> observers) {
  SimulationConfig config = request.config;
  config.bound = bound;
  config.seed = seed;
  for (ReplicaConfig& replica : config.replicas) replica.front = at_bound(replica.front, bound);
  const std::unique_ptr<RequestSource> source = request.load(seed);
  MetricsCollector collector(source->next_arrival().value_or(0), request.goals);
  observers.push_back(&collector);
  ObserverList all(std::move(observers));
  const SimulationTotals totals = simulate(config, *source, all);
  return {.totals = totals, .metrics = collector.metrics(request.percentiles)};
}

// Engines whose answers are sent as fast as at one end of the interval; nothing where sending hardly matters: a process
// that is busy for less than half of the time delays nobody.
std::optional<SimulationConfig> at_sending_cost(SimulationConfig config, const ServingMetrics& metrics, size_t end) {
  bool matters = false;
  const size_t prompts_alone = config.disaggregation ? config.disaggregation->prefill_replicas : 0;
  const double each = metrics.output_throughput / static_cast<double>(config.replicas.size() - prompts_alone);
  for (ReplicaConfig& replica : config.replicas) {
    FrontCosts& front = replica.front;
    const double pieces = each / static_cast<double>(replica.stream_interval);
    matters = matters || pieces * front.piece_high.value() > 0.5;
    front.piece = end == 0 ? front.piece_low : front.piece_high;
  }
  return matters ? std::optional(std::move(config)) : std::nullopt;
}

// The same run if first tokens came so many times as late.
ServingMetrics with_first_tokens_at(ServingMetrics metrics, double factor) {
  const auto change = [&](double& ttft, double& e2el) {
    e2el += (factor - 1) * ttft;
    ttft *= factor;
  };
  change(metrics.ttft.mean_ms, metrics.e2el.mean_ms);
  change(metrics.ttft.median_ms, metrics.e2el.median_ms);
  for (size_t i = 0; i < metrics.ttft.percentiles_ms.size(); ++i) {
    change(metrics.ttft.percentiles_ms[i], metrics.e2el.percentiles_ms[i]);
  }
  return metrics;
}

// How far the runs at both ends of an interval reach below and above.
struct EndReach {
  double below = 0, above = 0;
};
EndReach reach_of(double value, const std::vector<ServingMetrics>& ends,
                  const std::function<double(const ServingMetrics&)>& number) {
  EndReach reach;
  for (const ServingMetrics& end : ends) {
    reach.below = std::max(reach.below, value - number(end));
    reach.above = std::max(reach.above, number(end) - value);
  }
  return reach;
}

}  // namespace

Headline ServingRun::headline(const std::function<double(const ServingMetrics&)>& number) const {
  const double value = number(metrics);
  const EndReach steps = reach_of(value, at_bounds, number), drafts = reach_of(value, at_acceptance, number),
                 sending = reach_of(value, at_sending, number), first_token = reach_of(value, at_first_token, number);
  std::vector<double> seeds = {value};
  for (const ServingMetrics& other : other_seeds) seeds.push_back(number(other));
  const auto runs = static_cast<double>(seeds.size());
  const double from_seeds =
      seeds.size() > 1 ? normal_half_width_90 * standard_deviation(seeds) * std::sqrt(runs / (runs - 1)) : 0;
  return {.value = value,
          .low = std::max(0.0, value - portable_hypot(portable_hypot(steps.below, drafts.below, from_seeds),
                                                      sending.below, first_token.below)),
          .high = value + portable_hypot(portable_hypot(steps.above, drafts.above, from_seeds), sending.above,
                                         first_token.above)};
}

FirstTokenDoubt first_token_doubt(const SimulationConfig& config) {
  if (config.disaggregation) return config.disaggregation->first_token_doubt;
  FirstTokenDoubt widest;
  for (const ReplicaConfig& replica : config.replicas) {
    widest.low = std::min(widest.low, replica.first_token_doubt.low);
    widest.high = std::max(widest.high, replica.first_token_doubt.high);
  }
  return widest;
}

ServingMetrics run_metrics(const ServingRunRequest& request) {
  return run_once(request, request.config.bound, request.config.seed, request.observers).metrics;
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
                    .at_acceptance = {},
                    .at_sending = {},
                    .at_first_token = {},
                    .other_seeds = {},
                    .interval_s = series.interval_s(),
                    .series = series.points(),
                    .most_kv_blocks = series.most_kv_blocks()};
  if (request.step_bounds) {
    for (const StepBound bound : {StepBound::low, StepBound::high}) {
      result.at_bounds.push_back(run_once(request, bound, seed, {}).metrics);
    }
    for (const size_t end : {size_t{0}, size_t{1}}) {
      const auto add_run = [&](std::optional<SimulationConfig> config, std::vector<ServingMetrics>& runs) {
        if (!config) return;
        ServingRunRequest other = request;
        other.config = std::move(*config);
        runs.push_back(run_once(other, request.config.bound, seed, {}).metrics);
      };
      add_run(at_acceptance_end(request.config, end), result.at_acceptance);
      add_run(at_sending_cost(request.config, own.metrics, end), result.at_sending);
    }
  }
  if (const FirstTokenDoubt doubt = first_token_doubt(request.config); doubt.high > 1) {
    for (const double factor : {doubt.low, doubt.high}) {
      result.at_first_token.push_back(with_first_tokens_at(own.metrics, factor));
    }
  }
  for (int64_t i = 1; i <= request.more_seeds; ++i) {
    result.other_seeds.push_back(run_once(request, request.config.bound, seed + static_cast<uint64_t>(i), {}).metrics);
  }
  return result;
}

}  // namespace foretoken
