#include "serving/validate/validate_run.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/simulated_time.h"
#include "base/text.h"
#include "serving/engine/engine_builder.h"
#include "serving/engine/engine_setup.h"
#include "serving/load/listed_source.h"
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

// `engines` with queues of their own share the requests as vLLM's balancer does.
Replay replay(const MeasuredRun& run, const ReplicaConfig& engine, int64_t engines, StepBound bound) {
  ReplayedRequests source(run.requests);
  Records records(run.times.size());
  SimulationConfig config{.router = usual_router(run.flags.engine, engines), .bound = bound};
  config.replicas.assign(static_cast<size_t>(engines), engine);
  const SimulationTotals totals = simulate(config, source, records);
  return {std::move(records.by_id), totals};
}

// In the number formats that the run names. InputError for those that the model cannot have.
Model model_of(const MeasuredRun& run, const ModelCatalogue& models) {
  const Model model = models.model(run.model);
  if (run.quantization.empty() || model.is_quantized()) return model;  // as its config says
  const std::optional<Scheme> scheme = scheme_from_name(run.quantization);
  if (!scheme) {
    throw InputError({.source = "meta.json",
                      .path = "engine_kwargs.quantization",
                      .value = printable(run.quantization),
                      .expected = fmt::format("one of {}, or a model whose config says how it is quantized",
                                              fmt::join(scheme_names(), ", "))});
  }
  return with_scheme(model, *scheme, *scheme);
}

// InputError names the field of meta.json that cannot be simulated.
void check_layout(const MeasuredRun& run, const Model& model) {
  if (model.has_experts() && run.plan.data > 1 && run.plan.expert == 1) {
    throw InputError({.source = "meta.json",
                      .path = "engine_kwargs.enable_expert_parallel",
                      .value = "false with data_parallel_size above 1",
                      .expected = "true: with false, vLLM splits each expert across all data-parallel ranks, which "
                                  "is not simulated"});
  }
  if (!model.has_experts() && run.plan.expert > 1) {
    throw InputError({.source = "meta.json",
                      .path = "engine_kwargs.enable_expert_parallel",
                      .value = "true",
                      .expected = fmt::format("false: {} has no experts", model.name)});
  }
  check_step(model, {}, run.plan);
}

std::string layout_text(const ParallelPlan& plan, const EngineRanks& ranks) {
  std::string text =
      fmt::format("simulated on {} GPUs: tensor {}, pipeline {}, data {}, expert {}",
                  ranks.engines * engine_devices(ranks.plan), plan.tensor, plan.pipeline, plan.data, plan.expert);
  const int64_t together = lock_step_ranks(ranks.plan);
  if (together > 1) text += fmt::format("; {} data-parallel ranks share the experts and step together", together);
  if (ranks.engines > 1) text += fmt::format("; {} data-parallel ranks step on their own", ranks.engines);
  return text;
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
  const Model model = model_of(run, models);
  check_layout(run, model);
  const EngineRanks ranks = engine_ranks(run.plan);
  const bool has_peers = engine_devices(ranks.plan) > 1;
  const bool given_blocks = run.num_gpu_blocks > 0 && !request.own_blocks;
  if (given_blocks) run.flags.num_gpu_blocks_override = run.num_gpu_blocks;
  run.flags.kv_dtype = run.kv_dtype.value_or(model.kv_cache_dtype());
  EngineBuilder builder(
      {.device_models = make_models, .stack = [&](std::string_view name) { return stacks.stack(std::string(name)); }});
  const ReplicaGroup engine = builder.build({.model = model,
                                             .device = device,
                                             .plan = run.plan,
                                             .flags = run.flags,
                                             .scheduling = {.enable_chunked_prefill = run.enable_chunked_prefill,
                                                            .enable_prefix_caching = run.enable_prefix_caching},
                                             .steps = {.op_tables = request.op_tables, .link = run.link},
                                             .boards = BoardState::held_busy,
                                             .offline = true});
  const bool own_kernels = engine.has_own_kernels;

  const auto begin = std::chrono::steady_clock::now();
  std::vector<Replay> replays = {replay(run, engine.config, engine.count, StepBound::value)};
  if (own_kernels) {
    // Fewer blocks lengthen the queue and shorten steps, so neither bound goes with either.
    for (const double blocks : {engine.memory.blocks.low, engine.memory.blocks.high}) {
      ReplicaConfig bounded = engine.config;
      bounded.options.num_gpu_blocks = static_cast<int64_t>(blocks);
      for (const StepBound bound : {StepBound::low, StepBound::high}) {
        replays.push_back(replay(run, bounded, engine.count, bound));
      }
    }
  }
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;

  RunValidation result{.preemptions = replays.front().totals.preemptions,
                       .rejected = replays.front().totals.rejected,
                       .num_gpu_blocks = engine.config.options.num_gpu_blocks};
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
  if (run.plan.data > 1) validation.notes.back() += ", of each data-parallel rank";
  if (run.plan.data > 1 || has_peers) validation.notes.push_back(layout_text(run.plan, ranks));
  if (run.link) {
    validation.notes.push_back(
        has_peers ? fmt::format("collectives are rings over interconnect_given: {:.3g} GB/s and {:.3g} us a hop",
                                run.link->bandwidth.value() / 1e9, run.link->latency.value() * 1e6)
                  : "interconnect_given was not used: no GPU of this run talks to another");
  }
  validation.notes.insert(validation.notes.end(), run.notes.begin(), run.notes.end());
  return result;
}

}  // namespace foretoken
