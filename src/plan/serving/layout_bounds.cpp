#include "plan/serving/layout_bounds.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "serving/fleet/replica_capacity.h"

namespace foretoken {
namespace {

constexpr double latency_slack = 1.05, throughput_slack = 1.15;
// A limit for fewer requests than that says little about the mean.
constexpr double least_percentile_of_mean = 90;

double decode_alone_seconds(const ReadyEngine& engine, int64_t context) {
  const StepBatch step{
      .decodes = 1, .decode_context_tokens = context, .longest_decode_context = context, .prompts = {}};
  return engine.group.times->step_seconds(step).value / engine.tokens_per_decode;
}

double prompt_alone_seconds(const ReadyEngine& engine, int64_t tokens) {
  const int64_t most = std::max<int64_t>(1, engine.group.config.options.max_num_batched_tokens);
  double seconds = 0;
  for (int64_t done = 0; done < tokens; done += most) {
    const PromptChunk chunk{
        .new_tokens = std::min(most, tokens - done), .context_tokens = done, .yields_token = done + most >= tokens};
    seconds += engine.group.times->step_seconds({.prompts = {&chunk, 1}}).value;
  }
  return seconds;
}

// Until the engine has a request that nobody else stands in front of.
double front_seconds(const ReadyEngine& engine, int64_t tokens) {
  const FrontCosts& front = engine.group.config.front;
  return (front.latency + front.request + front.token * static_cast<double>(tokens)).value();
}

// Of the requests: the share that no engine of this cache could serve.
double unservable_share(const ReadyEngine& engine, const TrafficLengths& lengths) {
  const SchedulerOptions& options = engine.group.config.options;
  const int64_t cache = make_scheduler(engine.group.config.scheduler, options)->capacity_tokens();
  const int64_t most = options.max_model_len > 0 ? std::min(cache, options.max_model_len) : cache;
  const auto first = std::upper_bound(lengths.totals.begin(), lengths.totals.end(), most);
  return static_cast<double>(lengths.totals.end() - first) / static_cast<double>(lengths.totals.size());
}

std::optional<double> mean_tpot_limit(const ServingQuestion& question) {
  std::optional<double> limit;
  for (const LatencySlo& slo : question.slos) {
    if (slo.metric != SloMetric::tpot || slo.percentile < least_percentile_of_mean) continue;
    limit = std::min(limit.value_or(slo.limit_ms / 1e3), slo.limit_ms / 1e3);
  }
  return limit;
}

// Sequences that run at once while the limits are kept, at the most; with a third more and a few, since batches vary.
// By Little's law: so many requests/s, each for as long as the limits let its tokens take, or as the cache holds in the
// mean. Never above the engine's own limit.
int64_t reachable_seats(const ReadyEngine& engine, const ServingQuestion& question, const TrafficLengths& lengths,
                        double requests_per_s) {
  constexpr double spare = 1.35;
  constexpr int64_t few = 8;
  const SchedulerOptions& options = engine.group.config.options;
  double most = static_cast<double>(options.max_num_seqs);
  if (options.cache_groups.empty()) {
    const double held = lengths.mean_fresh_input + lengths.mean_output / 2;
    most = std::min(most, static_cast<double>(options.num_gpu_blocks * options.block_size) / std::max(1.0, held));
  }
  std::optional<double> prompt_s;
  for (const LatencySlo& slo : question.slos) {
    if (slo.metric == SloMetric::ttft) prompt_s = std::min(prompt_s.value_or(slo.limit_ms / 1e3), slo.limit_ms / 1e3);
  }
  if (const std::optional<double> tpot_s = mean_tpot_limit(question); tpot_s && prompt_s) {
    most = std::min(most, requests_per_s * (*prompt_s + lengths.mean_output * *tpot_s));
  }
  return std::min(options.max_num_seqs, static_cast<int64_t>(std::ceil(most * spare)) + few);
}

// Of one rank, at the most.
double requests_of_rank(const ReadyEngine& engine, const ServingQuestion& question, const TrafficLengths& lengths,
                        ReplicaWork work, bool prompts_alone = false) {
  CapacityQuestion capacity{.input_tokens = lengths.mean_fresh_input,
                            .output_tokens = lengths.mean_output,
                            .work = work,
                            .tokens_per_decode = engine.tokens_per_decode,
                            .prompts_alone = prompts_alone};
  if (const std::optional<double> limit = mean_tpot_limit(question)) capacity.tpot_s = *limit * latency_slack;
  SchedulerOptions options = engine.group.config.options;
  // A sequence holds its prompt and half its output in the mean.
  const double whole = capacity.input_tokens + capacity.output_tokens;
  const double held = lengths.mean_fresh_input + lengths.mean_output / 2;
  const bool keeps_all = options.cache_groups.empty();  // else windows and states hold more sequences than that
  const double blocks = keeps_all ? static_cast<double>(options.num_gpu_blocks) : 1e12;
  options.num_gpu_blocks = static_cast<int64_t>(std::ceil(blocks * whole / held));
  return requests_per_second(*engine.group.times, options, capacity);
}

// Where the cache limits what runs, all there are; else those of all sequences that may run and of what they share.
int64_t filled_blocks(const ReadyEngine& engine, const TrafficLengths& lengths, int64_t seats) {
  const SchedulerOptions& options = engine.group.config.options;
  const double held = lengths.mean_fresh_input + lengths.mean_output / 2;
  const double tokens = static_cast<double>(seats) * held + static_cast<double>(lengths.shared_tokens);
  const auto groups = static_cast<double>(std::max<size_t>(1, options.cache_groups.size()));
  const double filled = std::ceil(groups * tokens / static_cast<double>(std::max<int64_t>(1, options.block_size)));
  return static_cast<int64_t>(std::min(filled, static_cast<double>(options.num_gpu_blocks)));
}

EngineBounds::Pool most_requests(const ReadyEngine& engine, const ServingQuestion& question,
                                 const TrafficLengths& lengths, ReplicaWork work) {
  const SchedulerOptions& options = engine.group.config.options;
  const double requests_per_s = requests_of_rank(engine, question, lengths, work);
  const int64_t seats = work == ReplicaWork::prompts
                            ? options.max_num_seqs
                            : reachable_seats(engine, question, lengths, requests_per_s * throughput_slack);
  // Were all of them prompts of the longest kind, or answers that are computed again, they would fill no more of a
  // step.
  const int64_t most_tokens = seats * std::max<int64_t>(1, lengths.totals.back());
  return {.requests_per_s = requests_per_s,
          .ranks = options.lock_step_ranks,
          .seats = seats,
          .step_tokens = std::min(options.max_num_batched_tokens, most_tokens),
          .blocks = filled_blocks(engine, lengths, seats)};
}

// `whole`: requests/s of a rank at its bound.
double alone_share(const ReadyEngine& engine, const ServingQuestion& question, const TrafficLengths& lengths,
                   double whole) {
  if (engine.group.config.options.lock_step_ranks == 1) return 1;
  return std::min(1.0, requests_of_rank(engine, question, lengths, ReplicaWork::all, true) / whole);
}

// `whole`: requests/s of a rank with all their work.
double prompt_share(const ReadyEngine& engine, const TrafficLengths& lengths, double whole) {
  const CapacityQuestion prompts{.input_tokens = lengths.mean_fresh_input, .work = ReplicaWork::prompts};
  const SchedulerOptions& options = engine.group.config.options;
  return std::clamp(whole / requests_per_second(*engine.group.times, options, prompts), 0.0, 1.0);
}

double ttft_slack(const ServingQuestion& question, const std::vector<double>& alone_ms) {
  constexpr double least = 0.05;  // a request alone is judged with 5% to spare
  double slack = 1;
  for (size_t i = 0; i < alone_ms.size(); ++i) {
    const LatencySlo& slo = question.slos[i];
    if (slo.metric == SloMetric::ttft) slack = std::min(slack, std::max(least, 1 - alone_ms[i] / slo.limit_ms));
  }
  return slack;
}

bool prefixes_fit(const ReadyEngine& engine, const TrafficLengths& lengths, int64_t seats) {
  const SchedulerOptions& options = engine.group.config.options;
  const double running = static_cast<double>(seats) * (lengths.mean_fresh_input + lengths.mean_output / 2);
  return options.cache_groups.empty() && static_cast<double>(lengths.shared_tokens) + running <=
                                             static_cast<double>(options.num_gpu_blocks * options.block_size);
}

double requests_of(const EngineBounds::Pool& bound, int64_t replicas) {
  return bound.requests_per_s * static_cast<double>(bound.ranks * replicas);
}

// What no request at the limit's percentile can beat; 0 where nothing is known.
double alone_seconds(const LatencySlo& slo, const TrafficLengths& lengths, const ReadyEngine& prefill,
                     const ReadyEngine& decode) {
  switch (slo.metric) {
    case SloMetric::ttft: {
      const int64_t input = TrafficLengths::at_percentile(lengths.fresh_inputs, slo.percentile);
      return front_seconds(prefill, input) + prompt_alone_seconds(prefill, input);
    }
    case SloMetric::tpot:
      if (lengths.mean_contexts.empty()) return 0;
      return decode_alone_seconds(decode, TrafficLengths::at_percentile(lengths.mean_contexts, slo.percentile));
    case SloMetric::e2el: {
      const int64_t output = TrafficLengths::at_percentile(lengths.outputs, slo.percentile);
      return static_cast<double>(output - 1) * decode_alone_seconds(decode, 1);
    }
    case SloMetric::itl:
      return 0;  // several tokens may come out at once
  }
  return 0;
}

PruneReason reason_of_slow(SloMetric metric) {
  return metric == SloMetric::ttft   ? PruneReason::slow_prefill
         : metric == SloMetric::tpot ? PruneReason::slow_decode
                                     : PruneReason::slow_answer;
}

PruneReason reason_of_failure(StartFailure failure) {
  switch (failure) {
    case StartFailure::no_room:
      return PruneReason::no_room;
    case StartFailure::runs_out:
      return PruneReason::runs_out;
    case StartFailure::refuses_limits:
      return PruneReason::clash;
  }
  throw InternalError("every failure is a reason");
}

}  // namespace

std::string_view prune_reason_text(PruneReason reason) {
  switch (reason) {
    case PruneReason::no_room:
      return "weights and the longest request do not fit in memory";
    case PruneReason::clash:
      return "the limits contradict each other, or there is no room for the draft model";
    case PruneReason::runs_out:
      return "the server runs out of memory while it starts";
    case PruneReason::cache_too_small:
      return "the KV cache is too small for the requests";
    case PruneReason::slow_decode:
      return "one decode alone exceeds the TPOT limit";
    case PruneReason::slow_prefill:
      return "prefill alone exceeds the TTFT limit";
    case PruneReason::slow_answer:
      return "a request alone exceeds the end-to-end limit";
    case PruneReason::too_few_requests:
      return "cannot sustain the request rate";
  }
  return "";
}

EngineBounds engine_bounds(const ServingQuestion& question, const Traffic& traffic, const LayoutEngines& engines) {
  EngineBounds bounds;
  if (!engines.start()) {
    bounds.pruned = reason_of_failure(engines.failure.value());
    return bounds;
  }
  const TrafficLengths& lengths = traffic.lengths();
  const ReadyEngine& prefill = *engines.pool;
  const ReadyEngine& decode = engines.decode != nullptr ? *engines.decode : prefill;
  double highest = 0;
  for (const LatencySlo& slo : question.slos) highest = std::max(highest, slo.percentile);
  if (unservable_share(decode, lengths) > 1 - highest / 100) {
    bounds.pruned = PruneReason::cache_too_small;
    return bounds;
  }
  for (const LatencySlo& slo : question.slos) {
    const double alone = alone_seconds(slo, lengths, prefill, decode);
    bounds.alone_ms.push_back(alone * 1e3);
    if (!bounds.pruned && alone * 1e3 > slo.limit_ms * latency_slack) bounds.pruned = reason_of_slow(slo.metric);
  }
  if (bounds.pruned) return bounds;
  const bool separate = engines.decode != nullptr;
  bounds.pool = most_requests(prefill, question, lengths, separate ? ReplicaWork::prompts : ReplicaWork::all);
  if (separate) bounds.decode = most_requests(decode, question, lengths, ReplicaWork::decodes);
  bounds.shape = {.prompt_share = separate ? 0 : prompt_share(prefill, lengths, bounds.pool.requests_per_s),
                  .ttft_slack = ttft_slack(question, bounds.alone_ms),
                  .fresh_share = std::min(1.0, lengths.mean_fresh_input / std::max(1.0, lengths.mean_input)),
                  .alone_share = separate ? 1 : alone_share(prefill, question, lengths, bounds.pool.requests_per_s)};
  bounds.prefixes_fit = prefixes_fit(prefill, lengths, bounds.pool.seats);
  return bounds;
}

LayoutJudgement judge_layout(const EngineBounds& bounds, const ServingLayout& layout) {
  LayoutJudgement judgement{
      .pruned = bounds.pruned, .shape = {}, .alone_ms = bounds.alone_ms, .reachable = {}, .filled_blocks = {}};
  if (judgement.pruned) return judgement;
  double most = requests_of(bounds.pool, layout.pool.replicas);
  judgement.shape = bounds.shape;
  judgement.reachable = {bounds.pool.seats, bounds.pool.step_tokens};
  judgement.filled_blocks = {bounds.pool.blocks};
  if (layout.pool.host_gib > 0 && !bounds.prefixes_fit) judgement.reachable.push_back(layout.pool.host_gib);
  if (layout.decode) {
    most = std::min(most, requests_of(bounds.decode, layout.decode->replicas));
    judgement.reachable.insert(judgement.reachable.end(), {bounds.decode.seats, bounds.decode.step_tokens});
    judgement.filled_blocks.insert(judgement.filled_blocks.begin(), bounds.decode.blocks);
  }
  judgement.most_requests_per_s = most * throughput_slack;
  return judgement;
}

LayoutJudgement judge_layout(const ServingQuestion& question, const Traffic& traffic, const ServingLayout& layout,
                             const LayoutEngines& engines) {
  return judge_layout(engine_bounds(question, traffic, engines), layout);
}

namespace {

// With limits far above what a request alone takes, and no prefixes: by simulations of Llama, Qwen and DeepSeek models
// on one to eight H100 and H200 (docs/planning.md).
ReachedShare reached_without_haste(const ServingLayout& layout, double prompt_share) {
  if (layout.decode) return {.usual = 0.44, .low = 0.15, .high = 0.8};
  if (layout.pool.engine.pipeline > 1) return {.usual = 0.25, .low = 0.1, .high = 0.75};
  constexpr ReachedShare decodes = {.usual = 0.75, .low = 0.25, .high = 1};
  constexpr ReachedShare prompts = {.usual = 0.5, .low = 0.2, .high = 0.8};
  constexpr double few_prompts = 0.7;
  const double part = std::clamp((prompt_share - few_prompts) / (1 - few_prompts), 0.0, 1.0);
  return {.usual = std::lerp(decodes.usual, prompts.usual, part),
          .low = std::lerp(decodes.low, prompts.low, part),
          .high = std::lerp(decodes.high, prompts.high, part)};
}

}  // namespace

ReachedShare usually_reached(const ServingLayout& layout, const LoadShape& shape) {
  // Less time to wait costs about its share. Where prompts and decodes share steps, it may cost more: a prompt also
  // waits for steps that are longer than its own. It may cost less where few requests wait at all.
  const bool alone = layout.decode || layout.pool.engine.pipeline > 1;
  ReachedShare share = reached_without_haste(layout, shape.prompt_share);
  share.usual *= shape.alone_share * shape.ttft_slack * std::sqrt(shape.fresh_share * std::sqrt(shape.fresh_share));
  share.low *= shape.alone_share * shape.ttft_slack * (alone ? 1 : std::sqrt(shape.ttft_slack)) * shape.fresh_share;
  share.high *= std::sqrt(shape.ttft_slack);
  return share;
}

}  // namespace foretoken
