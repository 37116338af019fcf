#include "validate/serving/validate_run.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/simulated_time.h"
#include "base/text.h"
#include "compose/model_spec.h"
#include "library/library.h"
#include "serving/engine/engine_setup.h"
#include "validate/serving/request_records.h"

namespace foretoken {
namespace {

struct Replay {
  std::vector<RequestRecord> by_id;
  ServingPrediction answer;
};

Replay replay(EngineBuilder& builder, const RunSpecs& specs) {
  RequestRecords records(specs.load.listed.size());
  DeploymentSpec observed = specs.deployment;
  observed.observers.push_back(&records);
  ServingPrediction answer = simulate_serving(builder, specs.engine, specs.load, observed);
  return {std::move(records.by_id), std::move(answer)};
}

// The number formats that the run names. InputError for those that the model cannot have.
ModelSpec model_spec_of(const VllmRun& run, const Library& library) {
  ModelSpec spec{.model = run.model};
  if (run.kv_dtype) spec.kv_cache_dtype = dtype_name(*run.kv_dtype);
  if (run.quantization.empty() || library.models().model(run.model).is_quantized()) return spec;  // as its config says
  if (!scheme_from_name(run.quantization)) {
    throw InputError({.source = "meta.json",
                      .path = "engine_kwargs.quantization",
                      .value = printable(run.quantization),
                      .expected = fmt::format("one of {}, or a model whose config says how it is quantized",
                                              fmt::join(scheme_names(), ", "))});
  }
  spec.quantization = run.quantization;
  return spec;
}

// InputError names the field of meta.json that cannot be simulated.
void check_layout(const VllmRun& run, const Model& model) {
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

// The run as asked, then at the bounds of its steps and of the blocks that fit: fewer blocks lengthen the queue and
// shorten steps, so neither bound goes with either.
std::vector<Replay> replays_within_bounds(EngineBuilder& builder, const RunSpecs& specs) {
  std::vector<Replay> replays;
  replays.push_back(replay(builder, specs));
  const ReplicaGroup& group = replays.front().answer.groups.front();
  if (!group.has_own_kernels) return replays;
  const Estimate blocks = group.memory.blocks;
  for (const double bounded_blocks : {blocks.low, blocks.high}) {
    for (const StepBound bound : {StepBound::low, StepBound::high}) {
      RunSpecs bounded = specs;
      bounded.engine.flags.num_gpu_blocks_override = static_cast<int64_t>(bounded_blocks);
      bounded.deployment.bound = bound;
      try {
        replays.push_back(replay(builder, bounded));
      } catch (const InputError&) {
        // Too few blocks for one sequence, the only thing that changed. The run did start, so it had more.
      }
    }
  }
  return replays;
}

// Of request `id` in all replays that served it; the first one did.
Headline predicted_metric(RequestMetric metric, const std::vector<Replay>& replays, size_t id) {
  Headline predicted;
  predicted.value = predicted.low = predicted.high = simulated(metric, replays.front().by_id[id]);
  for (const Replay& other : replays) {
    if (other.by_id[id].outcome == RequestOutcome::rejected) continue;  // fewer blocks cannot hold it: no time
    const double bound = simulated(metric, other.by_id[id]);
    predicted.low = std::min(predicted.low, bound);
    predicted.high = std::max(predicted.high, bound);
  }
  return predicted;
}

class RunErrors {
 public:
  void add(const std::string& metric, double measured, const Headline& predicted) {
    errors_.add(metric, {measured, predicted.value, predicted.low, predicted.high});
    sums_[metric].predicted += predicted.value;
    sums_[metric].measured += measured;
  }

  void write(RunValidation& result) const {
    Validation& validation = result.errors;
    validation.overall = errors_.overall();
    for (const auto& [name, summary] : errors_.groups()) {
      validation.groups.push_back(
          {.name = name, .errors = summary, .seconds_per_1000_rows = validation.seconds_per_1000_rows});
      const double off = percent_off(sums_.at(name).predicted, sums_.at(name).measured);
      result.error_of_means[name] = off;
      validation.notes.push_back(fmt::format("mean {}: {:+.2f}%", name, off));
    }
  }

 private:
  struct Sums {
    double predicted = 0, measured = 0;
  };
  ErrorTable errors_;
  std::map<std::string, Sums> sums_;
};

void score_request(const VllmRun& run, const RunSpecs& specs, const std::vector<Replay>& replays, size_t id,
                   const ScoredServingSink& sink, RunErrors& errors) {
  for (const auto& [name, metric] : request_metrics) {
    const auto measured =
        metric(run.times[id].ttft_s(), run.times[id].e2e_s(), replays.front().by_id[id].output_tokens);
    if (!measured || *measured <= 0) continue;
    const Headline predicted = predicted_metric(metric, replays, id);
    errors.add(name, *measured, predicted);
    if (!sink) continue;
    sink({.id = std::to_string(id),
          .group = name,
          .device = specs.engine.device.name,
          .model = specs.engine.model.name,
          .engine = run.flags.engine,
          .metric = name,
          .row = id + 2,
          .measured = *measured,
          .predicted = predicted});
  }
}

void add_notes_of_run(const VllmRun& run, const RunValidationRequest& request, RunValidation& result) {
  const EngineRanks ranks = engine_ranks(run.plan);
  const bool has_peers = engine_devices(ranks.plan) > 1;
  const bool given_blocks = run.num_gpu_blocks > 0 && !request.own_blocks;
  std::vector<std::string>& notes = result.errors.notes;
  notes.push_back(fmt::format("throughput: {:+.2f}%", result.throughput_error));
  notes.push_back(fmt::format("{} preemptions, {} rejected, {} KV blocks ({})", result.preemptions, result.rejected,
                              result.num_gpu_blocks, given_blocks ? "given" : "from first principles"));
  if (run.plan.data > 1) notes.back() += ", of each data-parallel rank";
  if (run.plan.data > 1 || has_peers) notes.push_back(layout_text(run.plan, ranks));
  if (run.link) {
    notes.push_back(has_peers
                        ? fmt::format("collectives are rings over interconnect_given: {:.3g} GB/s and {:.3g} us a hop",
                                      run.link->bandwidth.value() / 1e9, run.link->latency.value() * 1e6)
                        : "interconnect_given was not used: no GPU of this run talks to another");
  }
  notes.insert(notes.end(), run.notes.begin(), run.notes.end());
}

LinkSpec link_of(const VllmRun& run) {
  if (!run.link) return {};
  return {.bandwidth = run.link->bandwidth, .latency = run.link->latency};
}

}  // namespace

RunSpecs run_specs(const VllmRun& run, const RunValidationRequest& request, const Library& library) {
  const ModelSpec asked = model_spec_of(run, library);
  const Device device = library.hardware().device(request.device.empty() ? run.device : request.device);
  const Model model = open_model(library, asked, device, run.plan);
  check_layout(run, model);
  RunSpecs specs{.engine = {.model = model,
                            .device = device,
                            .plan = run.plan,
                            .placement = {.link = link_of(run)},
                            .flags = run.flags,
                            .stack = run.stack,
                            .scheduler = run.scheduler,
                            .scheduling = run.scheduling,
                            .speculation = run.speculation,
                            .steps = {.op_tables = request.op_tables},
                            .boards = BoardState::held_busy,
                            .power = library.power_model(device),
                            .offline = true},
                 .load = {.listed = run.requests},
                 .deployment = {.percentiles = {}, .step_bounds = false}};
  specs.engine.flags.kv_dtype = kv_cache_dtype(asked, model);
  if (run.speculation && !run.speculation->model.empty() && run.speculation->method->network != nullptr) {
    specs.engine.draft_model = library.models().model(run.speculation->model);
  }
  if (run.num_gpu_blocks > 0 && !request.own_blocks) {
    specs.engine.flags.num_gpu_blocks_override = run.num_gpu_blocks;
  }
  return specs;
}

RunValidation validate_run(const RunValidationRequest& request, const Library& library, const ServingFacts& facts,
                           const ScoredServingSink& sink) {
  const VllmRun run = read_vllm_run(request.folder);
  const RunSpecs specs = run_specs(run, request, library);
  EngineBuilder builder(facts);
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<Replay> replays = replays_within_bounds(builder, specs);
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;

  const ReplicaGroup& group = replays.front().answer.groups.front();
  const SimulationTotals& totals = replays.front().answer.run.totals;
  RunValidation result{.preemptions = totals.preemptions,
                       .rejected = totals.rejected,
                       .num_gpu_blocks = group.config.options.num_gpu_blocks};
  RunErrors errors;
  for (size_t id = 0; id < run.times.size(); ++id) {
    if (replays.front().by_id[id].outcome == RequestOutcome::rejected) continue;
    score_request(run, specs, replays, id, sink, errors);
  }
  result.errors.has_intervals = group.has_own_kernels;
  result.errors.seconds_per_1000_rows = spent.count() / static_cast<double>(run.times.size()) * 1000;
  errors.write(result);
  result.throughput_error = percent_off(run.end_s(), to_seconds(totals.end).value());
  add_notes_of_run(run, request, result);
  return result;
}

}  // namespace foretoken
