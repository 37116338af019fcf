#include "validate/deployment/run_case.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/simulated_time.h"
#include "base/statistics.h"
#include "validate/serving/request_records.h"

namespace foretoken {
namespace {

// Noise and model error together (log), and where errors stop to count by their square.
constexpr double e2e_sd = 0.025, ttft_sd = 0.09, e2e_huber = 3, ttft_huber = 1.5;
// A load that was made up from a summary is not the one that was sent: its numbers say less.
constexpr double made_up_sd = 2;
constexpr size_t requests_of_a_part = 30, most_parts = 4;
constexpr double most_failed = 0.02;  // share of requests: beyond, times of the others are not those of the load

struct MetricKind {
  std::string_view name;
  const MeasuredLatency MeasuredSummary::*latency;
  double sd, huber;
};
constexpr MetricKind metric_kinds[] = {{"e2e_ms", &MeasuredSummary::e2e, e2e_sd, e2e_huber},
                                       {"tpot_ms", &MeasuredSummary::tpot, e2e_sd, e2e_huber},
                                       {"ttft_ms", &MeasuredSummary::ttft, ttft_sd, ttft_huber}};
const MetricKind& kind_of(RunMetric metric) {
  return metric_kinds[static_cast<size_t>(metric)];
}

bool is_replayed(const MeasuredRequest& request) {
  return request.status == MeasuredStatus::completed && request.input_tokens > 0 && request.output_tokens > 0;
}

LoadSpec made_up(const MeasuredLoad& load, const std::string& name) {
  const auto need = [&](bool given, const char* what) {
    if (given) return;
    throw InputError({.source = name,
                      .value = fmt::format("no requests, and no {} in its load", what),
                      .expected =
                          "requests.csv, or a load with num_prompts, input_len, output_len, and request_rate or "
                          "max_concurrency"});
  };
  need(load.num_prompts && *load.num_prompts > 0, "num_prompts");
  need(load.input_len && *load.input_len >= 1, "input_len");
  need(load.output_len && *load.output_len >= 1, "output_len");
  need(load.request_rate || load.max_concurrency, "request_rate or max_concurrency");
  LoadSpec spec{.num_prompts = *load.num_prompts,
                .max_concurrency = load.max_concurrency.value_or(0),
                .input_len = std::lround(*load.input_len),
                .output_len = std::lround(*load.output_len)};
  if (load.request_rate) spec.arrivals.rate = *load.request_rate;
  if (load.burstiness) spec.arrivals.burstiness = *load.burstiness;
  return spec;
}

double value_of(RunMetric metric, double ttft_s, double e2e_s, int64_t output_tokens) {
  switch (metric) {
    case RunMetric::e2e:
      return e2e_s;
    case RunMetric::tpot:
      return output_tokens > 1 ? (e2e_s - ttft_s) / static_cast<double>(output_tokens - 1) : 0;
    case RunMetric::ttft:
      return ttft_s;
  }
  return 0;
}

double central(std::vector<double> values, bool median) {
  if (values.empty()) return 0;
  return median ? quantile(std::move(values), 0.5) : mean(values);
}

std::string name_of(const MeasuredRun& run, int64_t stage, size_t part, size_t parts) {
  std::string name = run.name;
  if (stage >= 0 && run.stages.size() > 1) name += fmt::format(", stage {}", stage);
  if (parts > 1) name += fmt::format(", part {} of {}", part + 1, parts);
  return name;
}

void add_summary(const MeasuredRun& run, int64_t stage, const MeasuredSummary& summary,
                 std::vector<RunObservation>& into) {
  const double failed = static_cast<double>(summary.failed.value_or(0));
  if (failed > most_failed * (failed + static_cast<double>(summary.completed.value_or(0)))) return;
  const auto add = [&](RunMetric metric) {
    const MetricKind& kind = kind_of(metric);
    const MeasuredLatency& latency = summary.*kind.latency;
    const auto median = latency.percentiles.find(50);
    const bool by_median =
        median != latency.percentiles.end() && (metric == RunMetric::ttft || !latency.mean.has_value());
    if (!by_median && !latency.mean) return false;
    const double seconds = by_median ? median->second : *latency.mean;
    if (seconds <= 0) return false;
    into.push_back({.name = name_of(run, stage, 0, 1),
                    .metric = metric,
                    .median = by_median,
                    .stage = stage,
                    .requests = {},
                    .measured_s = seconds,
                    .sd = kind.sd * (run.requests.empty() ? made_up_sd : 1),
                    .huber = kind.huber});
    return true;
  };
  if (!add(RunMetric::e2e)) add(RunMetric::tpot);
  add(RunMetric::ttft);
}

void add_requests(const MeasuredRun& run, int64_t stage, const std::vector<size_t>& requests,
                  std::vector<RunObservation>& into) {
  const size_t parts = std::clamp<size_t>(requests.size() / requests_of_a_part, 1, most_parts);
  for (size_t part = 0; part < parts; ++part) {
    const std::vector<size_t> some(requests.begin() + static_cast<int64_t>(part * requests.size() / parts),
                                   requests.begin() + static_cast<int64_t>((part + 1) * requests.size() / parts));
    for (const RunMetric metric : {RunMetric::e2e, RunMetric::ttft}) {
      const MetricKind& kind = kind_of(metric);
      const bool median = metric == RunMetric::ttft;
      std::vector<double> values;
      for (const size_t id : some) {
        const MeasuredRequest& request = run.requests[id];
        values.push_back(value_of(metric, *request.ttft_s, *request.e2e_s, request.output_tokens));
      }
      const double seconds = central(std::move(values), median);
      if (seconds <= 0) continue;
      into.push_back({.name = name_of(run, stage, part, parts),
                      .metric = metric,
                      .median = median,
                      .stage = stage,
                      .requests = some,
                      .measured_s = seconds,
                      .sd = kind.sd * std::sqrt(static_cast<double>(parts)),
                      .huber = kind.huber});
    }
  }
}

double of_summary(const RunObservation& observation, const ServingMetrics& metrics) {
  const LatencySummary& latency = observation.metric == RunMetric::e2e    ? metrics.e2el
                                  : observation.metric == RunMetric::tpot ? metrics.tpot
                                                                          : metrics.ttft;
  return 1e-3 * (observation.median ? latency.median_ms : latency.mean_ms);
}

}  // namespace

std::string_view run_metric_name(RunMetric metric) {
  return kind_of(metric).name;
}

LoadSpec load_of(const MeasuredRun& run) {
  if (run.requests.empty()) {
    if (run.stages.size() <= 1) return made_up(run.stages.empty() ? run.load : run.stages.front().load, run.name);
    LoadSpec all;
    for (const MeasuredStage& stage : run.stages) {
      if (stage.load.max_concurrency.value_or(0) > 0) {
        throw InputError({.source = run.name,
                          .value = "several stages with max_concurrency and no requests",
                          .expected = "requests.csv, or a run of one stage"});
      }
      const LoadSpec one = made_up(stage.load, run.name);
      const std::unique_ptr<RequestSource> source = make_load(one)(all.listed.size());
      while (source->next_arrival()) {
        Request request = source->next();
        request.id = static_cast<int64_t>(all.listed.size());
        request.arrival += to_picoseconds(Seconds(stage.start_s));
        all.listed.push_back(std::move(request));
      }
    }
    std::stable_sort(all.listed.begin(), all.listed.end(),
                     [](const Request& a, const Request& b) { return a.arrival < b.arrival; });
    return all;
  }
  LoadSpec load;
  for (size_t i = 0; i < run.requests.size(); ++i) {
    const MeasuredRequest& request = run.requests[i];
    if (!is_replayed(request)) continue;
    load.listed.push_back({.id = static_cast<int64_t>(i),
                           .arrival = to_picoseconds(Seconds(request.sent())),
                           .input_tokens = request.input_tokens,
                           .output_tokens = request.output_tokens,
                           .session = request.session,
                           .prefix_block_tokens = request.prefix_block_tokens,
                           .prefix_blocks = request.prefix_blocks});
  }
  if (load.listed.empty()) {
    throw InputError({.source = run.name, .value = "no request completed", .expected = "at least one to replay"});
  }
  std::stable_sort(load.listed.begin(), load.listed.end(),
                   [](const Request& a, const Request& b) { return a.arrival < b.arrival; });
  return load;
}

LoadSpec load_of(const RunCase& measured) {
  return measured.load ? *measured.load : load_of(measured.run);
}

std::vector<RunObservation> observations_of(const MeasuredRun& run, bool with_means) {
  std::vector<RunObservation> observations;
  const auto stages = static_cast<int64_t>(run.stages.size());
  for (int64_t stage = stages == 0 ? -1 : 0; stage < std::max<int64_t>(stages, 0); ++stage) {
    std::vector<size_t> timed;
    size_t failed = 0;
    for (size_t i = 0; i < run.requests.size(); ++i) {
      const MeasuredRequest& request = run.requests[i];
      if (stage >= 0 && request.stage != stage) continue;
      if (request.has_times() && is_replayed(request)) timed.push_back(i);
      failed += request.status != MeasuredStatus::completed ? 1 : 0;
    }
    const auto share = static_cast<double>(failed) / static_cast<double>(std::max<size_t>(1, failed + timed.size()));
    if (!timed.empty() && share <= most_failed) {
      add_requests(run, stage, timed, observations);
    } else if (timed.empty()) {
      add_summary(run, stage, stage < 0 ? run.summary : run.stages[static_cast<size_t>(stage)].summary, observations);
    }
    if (stage < 0) break;
  }
  if (!with_means) return observations;
  std::vector<RunObservation> means;
  for (const RunObservation& one : observations) {
    if (one.metric != RunMetric::ttft || !one.median || !one.requests.empty()) continue;
    const MeasuredSummary& summary = one.stage < 0 ? run.summary : run.stages[static_cast<size_t>(one.stage)].summary;
    if (!summary.ttft.mean) continue;
    means.push_back(one);
    means.back().median = false;
    means.back().measured_s = *summary.ttft.mean;
  }
  observations.insert(observations.end(), means.begin(), means.end());
  return observations;
}

ReplayedRun simulate_run(EngineBuilder& builder, const RunCase& measured, const LoadSpec& load, StepBound bound,
                         std::vector<RunObserver*> observers) {
  RequestRecords records(std::max(measured.run.requests.size(), load.listed.size()));
  if (!load.listed.empty()) observers.push_back(&records);
  DeploymentSpec deployment = measured.deployment;
  deployment.observers = std::move(observers);
  deployment.percentiles = {};
  deployment.bound = bound;
  deployment.step_bounds = false;
  ServingPrediction answer = simulate_serving(builder, measured.engine, load, deployment);
  if (load.listed.empty()) records.by_id.clear();
  return {.by_id = std::move(records.by_id), .answer = std::move(answer)};
}

std::vector<Headline> predicted_with_bounds(EngineBuilder& builder, const RunCase& measured, const LoadSpec& load,
                                            std::span<const RunObservation> observations) {
  std::vector<Headline> result;
  for (const StepBound bound : {StepBound::value, StepBound::low, StepBound::high}) {
    const std::vector<double> values =
        predicted(simulate_run(builder, measured, load, bound), measured.run, observations);
    for (size_t i = 0; i < values.size(); ++i) {
      if (bound == StepBound::value) {
        result.push_back({values[i], values[i], values[i]});
      } else {
        result[i].low = std::min(result[i].low, values[i]);
        result[i].high = std::max(result[i].high, values[i]);
      }
    }
  }
  return result;
}

std::vector<double> predicted(const ReplayedRun& simulated, const MeasuredRun& run,
                              std::span<const RunObservation> observations) {
  std::vector<double> values;
  for (const RunObservation& observation : observations) {
    if (simulated.by_id.empty() || (run.requests.empty() && observation.stage < 0)) {
      values.push_back(of_summary(observation, simulated.answer.run.metrics));
      continue;
    }
    std::vector<double> seconds;
    const auto add = [&](size_t id) {
      const RequestRecord& record = simulated.by_id[id];
      if (record.outcome != RequestOutcome::completed || record.output_tokens == 0) return;
      seconds.push_back(value_of(observation.metric, to_seconds(record.ttft()).value(),
                                 to_seconds(record.e2el()).value(), record.output_tokens));
    };
    if (!observation.requests.empty()) {
      for (const size_t id : observation.requests) add(id);
    } else if (run.requests.empty()) {
      // Made up stage by stage, one after the other.
      int64_t first = 0;
      for (int64_t stage = 0; stage < observation.stage; ++stage) {
        first += *run.stages[static_cast<size_t>(stage)].load.num_prompts;
      }
      const int64_t count = *run.stages[static_cast<size_t>(observation.stage)].load.num_prompts;
      for (int64_t id = first; id < first + count; ++id) add(static_cast<size_t>(id));
    } else {
      for (size_t id = 0; id < run.requests.size(); ++id) {
        if (observation.stage < 0 || run.requests[id].stage == observation.stage) add(id);
      }
    }
    values.push_back(central(std::move(seconds), observation.median));
  }
  return values;
}

}  // namespace foretoken
