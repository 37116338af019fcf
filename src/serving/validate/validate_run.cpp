#include "serving/validate/validate_run.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/simulated_time.h"
#include "serving/engine_setup.h"
#include "serving/load/listed_source.h"
#include "serving/simulation.h"
#include "serving/steps/composed_steps.h"
#include "serving/steps/op_tables.h"
#include "serving/steps/sustained_steps.h"
#include "serving/validate/measured_run.h"

namespace foretoken {
namespace {

class Records : public RunObserver {
 public:
  explicit Records(size_t requests) : by_id(requests) {}
  void request_ended(const RequestRecord& record) override { by_id[static_cast<size_t>(record.id)] = record; }
  std::vector<RequestRecord> by_id;
};

struct Replay {
  std::vector<RequestRecord> by_id;
  SimulationTotals totals;
};

Replay replay(const MeasuredRun& run, const SchedulerOptions& options, StepTimes& times, StepBound bound) {
  ReplayedRequests source(run.requests);
  Records records(run.times.size());
  const SimulationTotals totals =
      simulate({.replicas = {{.options = options, .times = &times}}, .bound = bound}, source, records);
  return {std::move(records.by_id), totals};
}

// Milliseconds; nothing where the metric has no meaning.
using RequestMetric = std::optional<double> (*)(double ttft_s, double e2e_s, int64_t output_tokens);

std::optional<double> ttft_ms(double ttft_s, double /*e2e_s*/, int64_t /*output_tokens*/) {
  return ttft_s * 1e3;
}
std::optional<double> e2e_ms(double /*ttft_s*/, double e2e_s, int64_t /*output_tokens*/) {
  return e2e_s * 1e3;
}
std::optional<double> tpot_ms(double ttft_s, double e2e_s, int64_t output_tokens) {
  if (output_tokens < 2) return std::nullopt;
  return (e2e_s - ttft_s) * 1e3 / static_cast<double>(output_tokens - 1);
}

constexpr std::pair<const char*, RequestMetric> request_metrics[] = {
    {"ttft_ms", ttft_ms}, {"tpot_ms", tpot_ms}, {"e2e_ms", e2e_ms}};

double simulated(RequestMetric metric, const RequestRecord& record) {
  return *metric(to_seconds(record.first_token - record.queued).value(),
                 to_seconds(record.last_token - record.queued).value(), record.output_tokens);
}

double percent_off(double predicted, double measured) {
  return 100 * (predicted / measured - 1);
}

}  // namespace

RunValidation validate_run(const RunValidationRequest& request, const HardwareCatalogue& hardware,
                           const ModelCatalogue& models, const StackCatalogue& stacks,
                           const DeviceModelMaker& make_models, const ScoredServingSink& sink) {
  MeasuredRun run = read_measured_run(request.folder);
  const Device device = hardware.device(request.device.empty() ? run.device : request.device);
  const Model model = models.model(run.model);
  const bool given_blocks = run.num_gpu_blocks > 0 && !request.own_blocks;
  if (given_blocks) run.flags.num_gpu_blocks_override = run.num_gpu_blocks;
  run.flags.kv_dtype = model.dtype;
  const ServingMemory memory = serving_memory(model, device, run.plan, run.flags);
  const SchedulerOptions options = scheduler_options(memory, run.plan);
  const ComposedStepsConfig composed{.model = model,
                                     .plan = run.plan,
                                     .models = make_models(device, run.plan),
                                     .stack = engine_stack(stacks.stack("vllm"), memory.flags),
                                     .kv_dtype = model.dtype};
  const bool own_kernels = request.op_tables.empty();
  std::unique_ptr<StepTimes> times =
      own_kernels ? compose_steps(composed)
                  : read_op_tables(request.op_tables, op_table_options(model, run.plan, composed.stack, device));
  if (composed.models.power) {
    times = sustained_steps(std::move(times), std::make_shared<SustainedGrid>(composed));
  }

  const auto begin = std::chrono::steady_clock::now();
  std::vector<Replay> replays = {replay(run, options, *times, StepBound::value)};
  if (own_kernels) {
    // Fewer blocks lengthen the queue and shorten steps, so neither bound goes with either.
    for (const double blocks : {memory.blocks.low, memory.blocks.high}) {
      SchedulerOptions bounded = options;
      bounded.num_gpu_blocks = static_cast<int64_t>(blocks);
      for (const StepBound bound : {StepBound::low, StepBound::high}) {
        replays.push_back(replay(run, bounded, *times, bound));
      }
    }
  }
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;

  RunValidation result{.preemptions = replays.front().totals.preemptions,
                       .rejected = replays.front().totals.rejected,
                       .num_gpu_blocks = options.num_gpu_blocks};
  ErrorTable errors;
  std::map<std::string, std::pair<double, double>> sums;  // predicted and measured
  for (size_t id = 0; id < run.times.size(); ++id) {
    const RequestRecord& record = replays.front().by_id[id];
    if (record.outcome == RequestOutcome::rejected) continue;
    for (const auto& [name, metric] : request_metrics) {
      const auto measured = metric(run.times[id].ttft_s(), run.times[id].e2e_s(), record.output_tokens);
      if (!measured || *measured <= 0) continue;
      Headline predicted;
      predicted.value = predicted.low = predicted.high = simulated(metric, record);
      for (const Replay& other : replays) {
        if (other.by_id[id].outcome == RequestOutcome::rejected) continue;  // fewer blocks cannot hold it: no time
        const double bound = simulated(metric, other.by_id[id]);
        predicted.low = std::min(predicted.low, bound);
        predicted.high = std::max(predicted.high, bound);
      }
      errors.add(name, {*measured, predicted.value, predicted.low, predicted.high});
      sums[name].first += predicted.value;
      sums[name].second += *measured;
      if (sink) {
        sink({.id = std::to_string(id),
              .group = name,
              .device = device.name,
              .model = model.name,
              .engine = run.flags.engine,
              .metric = name,
              .row = id + 2,
              .measured = *measured,
              .predicted = predicted});
      }
    }
  }
  Validation& validation = result.errors;
  validation.overall = errors.overall();
  validation.has_intervals = own_kernels;
  validation.seconds_per_1000_rows = spent.count() / static_cast<double>(run.times.size()) * 1000;
  for (const auto& [name, summary] : errors.groups()) {
    validation.groups.push_back(
        {.name = name, .errors = summary, .seconds_per_1000_rows = validation.seconds_per_1000_rows});
    const double off = percent_off(sums.at(name).first, sums.at(name).second);
    result.error_of_means[name] = off;
    validation.notes.push_back(fmt::format("mean {}: {:+.2f}%", name, off));
  }
  result.throughput_error = percent_off(run.end_s(), to_seconds(replays.front().totals.end).value());
  validation.notes.push_back(fmt::format("throughput: {:+.2f}%", result.throughput_error));
  validation.notes.push_back(fmt::format("{} preemptions, {} rejected, {} KV blocks ({})", result.preemptions,
                                         result.rejected, result.num_gpu_blocks,
                                         given_blocks ? "given" : "from first principles"));
  return result;
}

}  // namespace foretoken
