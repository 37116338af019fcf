#include "validate/serving/serving_specs.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/normal_distribution.h"
#include "base/portable_math.h"
#include "compose/serving_memory.h"
#include "library/library.h"
#include "model/checkpoint_name.h"
#include "serving/engine/engine_setup.h"
#include "serving/load/trace.h"
#include "serving/speculation/usual_acceptance.h"
#include "validate/serving/arrival_window.h"

namespace foretoken {
namespace {

// Runs of MLPerf last ten minutes at least (mlcommons/inference, mlperf.conf: min_duration) and send the data set again
// and again. The real ones end with a whole round (sample_concatenate_permutation); lengths drawn from a law have none.
constexpr double least_seconds = 600;
constexpr int64_t most_simulated = 30'000;  // of one simulation

int64_t ten_minutes_of(double requests_per_second) {
  return std::clamp<int64_t>(static_cast<int64_t>(requests_per_second * least_seconds) + 1, 1, most_simulated);
}

// As many of equal engines as one simulation holds, of a number that divides all of them.
int64_t engines_together(const LoadSpec& load, int64_t engines) {
  const double of_all = std::max(static_cast<double>(load.num_prompts), load.arrivals.rate * least_seconds);
  const double least_parts = of_all / static_cast<double>(most_simulated);
  for (int64_t together = engines; together > 1; --together) {
    if (engines % together == 0 && static_cast<double>(engines / together) >= least_parts) return together;
  }
  return 1;
}

constexpr int64_t few_requests = 50, seeds_of_few = 4;

// Whether the publisher's own config already stores weights so.
bool is_stored_as(const Model& model, std::string_view dtype) {
  const auto fits = [&](Scheme scheme) {
    if (dtype == "fp8") return scheme == Scheme::fp8 || scheme == Scheme::fp8_block;
    return scheme == Scheme::nvfp4 || scheme == Scheme::mxfp4 || scheme == Scheme::mxfp4_wo ||
           scheme == Scheme::mxfp4_mxfp8;
  };
  return fits(model.scheme) || (model.has_experts() && fits(model.expert_scheme));
}

// The fewest devices whose engine keeps a fifth of the memory for the cache, or else all of a node: what those who
// seek throughput choose.
CasePool chosen_layout(const ServingCase& point, const Model& model, const Device& device, const EngineFlags& flags) {
  constexpr double cache_share = 0.2;
  constexpr int64_t most = 8;
  CasePool pool;
  for (int64_t tensor = 1; tensor <= std::min(point.devices, most); tensor *= 2) {
    if (point.devices % tensor != 0) continue;
    pool = {.replicas = point.devices / tensor, .plan = {.tensor = tensor, .expert = tensor}};
    if (!model.has_experts()) pool.plan.expert = 1;
    const ServingMemory memory = serving_memory(model, device, pool.plan, flags);
    if (memory.kv_pool.value >= cache_share * allocatable_bytes(device).value) break;
  }
  return pool;
}

std::string plan_text(const ParallelPlan& plan) {
  return fmt::format("{} {} {} {}", plan.tensor, plan.pipeline, plan.expert, plan.data);
}

int64_t longest_of(const std::vector<Request>& requests) {
  int64_t longest = 0;
  for (const Request& request : requests) longest = std::max(longest, request.input_tokens + request.output_tokens);
  return longest;
}

constexpr double most_of_peak = 0.7;  // that prompts alone may take: no engine reaches more

// Clients that each wait for their answer before they ask again have so many prompts computed in a second.
// InputError where no such device could: prompts must have been found in a cache from before.
void check_within_peak(const ServingCase& point, const Model& model, const Device& device) {
  double ttft_ms = 0, tpot_ms = 0;
  for (const MeasuredValue& value : point.measured) {
    if (value.metric == "ttft_ms") ttft_ms = value.value;
    if (value.metric == "tpot_ms") tpot_ms = value.value;
  }
  const auto peak = device.peak_or_fallback(facts(model.scheme).math);
  const std::optional<LengthRange>& input = point.load.input_range;
  const std::optional<LengthRange>& output = point.load.output_range;
  if (point.load.max_concurrency == 0 || ttft_ms == 0 || tpot_ms == 0 || !peak || !input || !output) return;
  const double answer_s = 1e-3 * (ttft_ms + tpot_ms * static_cast<double>(output->most));
  const Flops prompt = model_flops(model, {.phase = StepPhase::prefill, .batch = 1, .input_len = input->least});
  const auto devices = static_cast<double>(point.pool.replicas * engine_devices(point.pool.plan));
  const double share =
      static_cast<double>(point.load.max_concurrency) / answer_s * prompt.value() / (devices * peak->value());
  if (share <= most_of_peak) return;
  throw InputError(
      {.value = fmt::format("the measured rate needs {:.0f}% of the GPU's peak for prompts alone", 100 * share),
       .expected = fmt::format("at most {:.0f}%: the figures are wrong, or the prompts were already cached",
                               100 * most_of_peak)});
}

}  // namespace

ServingSpecMaker::ServingSpecMaker(const Library& library, std::optional<AcceptanceTable> acceptance,
                                   std::filesystem::path traces)
    : library_(library),
      hardware_(library.hardware()),
      models_(library.models()),
      acceptance_(std::move(acceptance)),
      traces_(std::move(traces)) {}

std::string ServingSpecMaker::key_of(const ServingCase& point) {
  return fmt::format("{} | {} | {} | {} | {}", point.gpu, point.model, point.weight_dtype, point.kv_dtype,
                     point.expert_dtype);
}

std::string ServingSpecMaker::family_of(const ServingCase& point) const {
  return fmt::format("{} | {} | {} | {} | {} {}", key_of(point), plan_text(point.pool.plan),
                     point.prefill ? plan_text(point.prefill->plan) : "", point.stack, point.draft_method,
                     point.drafts);
}

bool ServingSpecMaker::has_experts(const std::string& model) {
  const auto known = experts_.find(model);
  return known != experts_.end() ? known->second
                                 : experts_.emplace(model, models_.model(model).has_experts()).first->second;
}

// fp8 and fp4 say how wide weights are: the format is that of the name, of the config, or of the checkpoint that the
// publisher (fp8) or NVIDIA (fp4) ships in it.
ModelSpec ServingSpecMaker::model_spec(const ServingCase& point) const {
  ModelSpec spec{.model = point.model, .kv_cache_dtype = point.kv_dtype.empty() ? "auto" : point.kv_dtype};
  if (point.weight_dtype != "fp8" && point.weight_dtype != "fp4") {
    spec.quantization = point.weight_dtype;
    return spec;
  }
  const Model model = models_.model(point.model);
  if (!point.expert_dtype.empty() && model.expert_scheme == Scheme::mxfp4_wo) {
    spec.quantization = "experts=" + point.expert_dtype;
    return spec;
  }
  if (model.named_scheme || is_stored_as(model, point.weight_dtype)) return spec;
  const std::string entry = models_.resolve(point.model).entry;
  if (point.weight_dtype == "fp8") {
    spec.model = entry + "-FP8";
  } else {
    spec.model = fmt::format("nvidia/{}-NVFP4", parse_checkpoint_name(entry).model);
  }
  return spec;
}

void ServingSpecMaker::open(ServingCase& point) {
  auto device = devices_.find(point.gpu);
  if (device == devices_.end()) device = devices_.emplace(point.gpu, hardware_.device(point.gpu)).first;
  auto opened = opened_.find(key_of(point));
  if (opened == opened_.end()) {
    const ModelSpec asked = model_spec(point);
    opened = opened_.emplace(key_of(point), OpenedModel{asked, open_model(library_, asked, device->second)}).first;
  }
  const auto& [asked, model] = opened->second;
  point.flags.kv_dtype = kv_cache_dtype(asked, model);
  if (point.devices > 0) point.pool = chosen_layout(point, model, device->second, point.flags);
  check_step(model, {}, point.pool.plan);
  if (point.prefill) check_step(model, {}, point.prefill->plan);
  if (!point.prefill && !point.trace) check_within_peak(point, model, device->second);
}

// APEX+ sent a trace at 0.25 or 0.5 requests a second, each of its engines every so many of them.
std::vector<Request> ServingSpecMaker::replayed_requests(const ServingCase& point) const {
  if (!point.trace) return {};
  const CaseTrace& trace = *point.trace;
  if (traces_.empty()) {
    throw InputError({.field = "traces", .expected = "the folder of the request files that rows replay"});
  }
  const bool slow = point.load.arrivals.rate * static_cast<double>(trace.shards) < 0.375;
  const std::unique_ptr<RequestSource> source =
      open_trace(traces_ / fmt::format("apex_{}_{}_{}.csv", trace.tokenizer, trace.name, slow ? "025" : "05"));
  std::vector<std::vector<Request>> shards(static_cast<size_t>(trace.shards));
  for (size_t i = 0; source->next_arrival(); ++i) shards[i % shards.size()].push_back(source->next());
  const auto distance = [&](const std::vector<Request>& shard) {
    int64_t tokens = 0;
    for (const Request& request : shard) tokens += request.input_tokens;
    return std::abs(tokens - trace.input_tokens);
  };
  return *std::min_element(shards.begin(), shards.end(),
                           [&](const auto& a, const auto& b) { return distance(a) < distance(b); });
}

EngineSpec ServingSpecMaker::engine_of(const ServingCase& point, const CasePool& pool) const {
  EngineSpec spec{.model = opened_.at(key_of(point)).model,
                  .device = devices_.at(point.gpu),
                  .plan = pool.plan,
                  .flags = point.flags,
                  .replicas = pool.replicas,
                  .stack = point.stack,
                  .scheduler = point.scheduler,
                  // On for every engine: runs had prompts longer than a step, and all were answered.
                  .scheduling = {.enable_chunked_prefill = true,
                                 .enable_prefix_caching = point.prefix_caching,
                                 .async_scheduling = point.async_scheduling,
                                 .batch_wait_timeout_iters = point.batch_wait_timeout_iters,
                                 .batch_wait_max_tokens_ratio = point.batch_wait_max_tokens_ratio},
                  .receive_interval = point.receive_interval,
                  .stream_interval = point.stream_interval};
  int64_t& longest = spec.flags.max_model_len;
  if (spec.model.max_positions > 0) longest = std::min(longest, spec.model.max_positions);
  return spec;
}

ServingSpecs ServingSpecMaker::specs(const ServingCase& point) const {
  ServingSpecs result{.engine = engine_of(point, point.pool), .load = point.load, .deployment = {.percentiles = {}}};
  EngineSpec& engine = result.engine;
  LoadSpec& load = result.load;
  if (point.trace) {
    load.listed = replayed_requests(point);
    int64_t& longest = engine.flags.max_model_len;
    longest = longest_of(load.listed);
    if (engine.model.max_positions > 0) longest = std::min(longest, engine.model.max_positions);
  }
  if (point.drafts > 0) {
    engine.speculation =
        SpeculativeConfig{.method = &draft_method(point.draft_method), .num_speculative_tokens = point.drafts};
    SpeculativeConfig& config = *engine.speculation;
    config.use_own_layer_of(engine.model);
    const double most = static_cast<double>(point.drafts) + 1;
    if (point.acceptance_length > 0) {
      const double length = std::clamp(point.acceptance_length, 1.0, most);
      config.acceptance = point.acceptance_is_forced ? Acceptance::of_mean_length(length, point.drafts)
                                                     : acceptance_of_run(length, point.drafts);
      config.same_for_all = point.acceptance_is_forced;
    } else {
      std::optional<Acceptance> own;  // of the model itself, where it was measured
      if (acceptance_) own = acceptance_->find(point.model, config.method->name, point.drafts);
      if (own) {
        config.assume(on_other_texts(*own));
      } else {
        config.assume_usual();
      }
    }
  }
  if (point.prefill) {
    // Dynamo stands in front of these runs and hands requests to the workers of a pool in turn.
    result.deployment.router = "round_robin";
    result.deployment.prefill = PrefillPool{.engine = engine_of(point, *point.prefill),
                                            .transfer = {.decode_router = result.deployment.router}};
    const auto given = [](auto& flag, auto value) {
      if (value > 0) flag = value;
    };
    given(engine.flags.max_num_seqs, point.decode_seats);
    given(engine.flags.memory_fraction, point.decode_memory);
    given(engine.flags.max_cudagraph_capture_size, point.decode_graphs);
    EngineFlags& of_prompts = result.deployment.prefill->engine.flags;
    given(of_prompts.max_num_seqs, point.prefill_seats);
    given(of_prompts.max_num_batched_tokens, point.prefill_tokens);
    given(of_prompts.memory_fraction, point.prefill_memory);
    return result;
  }
  if (point.sends_data_set && load.max_concurrency == 0) {
    const int64_t engines = engine.replicas;
    result.shortened = std::isfinite(load.arrivals.rate);
    engine.replicas = result.shortened ? engines_together(load, engines) : 1;
    result.stands_for = engines / engine.replicas;
    load.arrivals.rate /= static_cast<double>(result.stands_for);
    // Every n-th of requests that arrive by chance: gaps are sums of n exponential ones.
    load.arrivals.burstiness = static_cast<double>(result.stands_for);
    result.repeats_data_set = !result.shortened;
    load.num_prompts = std::clamp<int64_t>(load.num_prompts / result.stands_for, 1, most_simulated);
    if (result.shortened) load.num_prompts = std::max(load.num_prompts, ten_minutes_of(load.arrivals.rate));
  }
  // Few requests of drawn lengths: the run that was measured drew others.
  const auto drawn = [](const std::optional<LengthRange>& range) { return range && range->least * 2 < range->most; };
  if (drawn(load.input_range) || drawn(load.output_range) || load.dataset == Dataset::lognormal) {
    if (load.max_concurrency > 0 && load.num_prompts <= 2 * std::max<int64_t>(load.max_concurrency, few_requests)) {
      result.deployment.more_seeds = seeds_of_few;
    }
  }
  // NVIDIA's and AMD's harnesses for MLPerf send a request to the engine with the fewest pending ones.
  result.deployment.router =
      point.sends_data_set ? "least_outstanding" : usual_router(point.flags.engine, point.pool.replicas);
  result.may_be_out_of_step = point.lengths_are_assumed && load.max_concurrency > 1;
  return result;
}

namespace {

// Of the same clients at the same pace, each of which asks a little after the one before.
ServingMetrics run_out_of_step(EngineBuilder& builder, ServingSpecs specs, double requests_per_second) {
  constexpr double even_gaps = 1000;
  specs.load.arrivals.rate = requests_per_second;
  specs.load.arrivals.burstiness = even_gaps;
  specs.deployment.step_bounds = false;
  specs.deployment.more_seeds = 0;
  return simulate_serving(builder, specs.engine, specs.load, specs.deployment).run.metrics;
}

// The same load, long enough: at its end fewer and fewer requests are left, which a short run has too much of.
LoadSpec repeated_for_ten_minutes(EngineBuilder& builder, const ServingSpecs& specs) {
  DeploymentSpec deployment = specs.deployment;
  deployment.step_bounds = false;
  const ServingMetrics once = simulate_serving(builder, specs.engine, specs.load, deployment).run.metrics;
  LoadSpec load = specs.load;
  load.num_prompts = std::max(load.num_prompts, ten_minutes_of(once.request_throughput));
  return load;
}

}  // namespace

PointRun simulate_point(EngineBuilder& builder, const ServingSpecs& specs) {
  if (!specs.shortened) {
    const LoadSpec load = specs.repeats_data_set ? repeated_for_ten_minutes(builder, specs) : specs.load;
    PointRun result{.run = simulate_serving(builder, specs.engine, load, specs.deployment).run, .out_of_step = {}};
    if (const double pace = result.run.metrics.request_throughput; specs.may_be_out_of_step && pace > 0) {
      result.out_of_step = run_out_of_step(builder, specs, pace);
    }
    return result;
  }
  std::vector<ServingRun> runs;
  for (const StepBound bound : {StepBound::value, StepBound::low, StepBound::high}) {
    DeploymentSpec deployment = specs.deployment;
    deployment.bound = bound;
    deployment.step_bounds = false;
    ArrivalWindow window;
    deployment.observers.push_back(&window);
    ServingRun& run = runs.emplace_back(simulate_serving(builder, specs.engine, specs.load, deployment).run);
    if (const auto rates = window.rates()) {
      run.metrics.request_throughput = rates->requests;
      run.metrics.output_throughput = rates->output_tokens;
    }
  }
  ServingRun result = std::move(runs.front());
  result.at_bounds = {runs[1].metrics, runs[2].metrics};
  return {.run = std::move(result), .out_of_step = {}};
}

namespace {

// Share by which the rate of an open loop may differ whatever the engine does: requests arrive by chance, and the mean
// output of a data set is an assumption (MLPerf accepts means up to 10% off the reference).
double offered_spread(const LoadSpec& load, std::string_view metric) {
  if (!std::isfinite(load.arrivals.rate) || load.requests() <= 0) return 0;
  constexpr double assumed_length = 0.05;
  const double by_chance = normal_half_width_90 / std::sqrt(static_cast<double>(load.requests()));
  return metric == "out_tok_s" && load.output_law ? portable_hypot(by_chance, assumed_length) : by_chance;
}

// An end of what is not known about the load, which has nothing to do with how long steps take.
void reach_to(double other, Headline& value) {
  if (other < value.value) {
    value.low = std::max(0.0, value.value - portable_hypot(value.value - value.low, value.value - other));
  } else {
    value.high = value.value + portable_hypot(value.high - value.value, other - value.value);
  }
}

}  // namespace

std::vector<Headline> predicted_values(const ServingCase& point, const ServingSpecs& specs, const PointRun& simulated) {
  const ServingRun& run = simulated.run;
  if (run.metrics.completed == 0) {
    throw InputError({.source = point.id, .value = "no request", .expected = "requests that fit the engine"});
  }
  std::vector<Headline> values;
  for (const MeasuredValue& measured : point.measured) {
    Headline value = run.headline(measured.predicted);
    if (simulated.out_of_step) reach_to(measured.predicted(*simulated.out_of_step), value);
    // Of a run that was published, so that its mean kept the limit of 99 in 100 requests.
    if (measured.at_most > 0) value.high = std::clamp(measured.at_most, value.value, value.high);
    if (measured.metric == "out_tok_s" || measured.metric == "req_s") {
      for (double* one : {&value.value, &value.low, &value.high}) *one *= static_cast<double>(specs.stands_for);
      const double spread = offered_spread(point.load, measured.metric) * value.value;
      value.low = value.value - portable_hypot(value.value - value.low, spread);
      value.high = value.value + portable_hypot(value.high - value.value, spread);
    }
    values.push_back(value);
  }
  return values;
}

}  // namespace foretoken
