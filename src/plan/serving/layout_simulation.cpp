#include "plan/serving/layout_simulation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/normal_distribution.h"
#include "base/portable_math.h"
#include "model/weights.h"
#include "plan/serving/capacity_search.h"
#include "plan/serving/wanted_check.h"
#include "serving/energy/energy_account.h"
#include "serving/engine/engine_setup.h"
#include "serving/engine/engine_tiers.h"

namespace foretoken {
namespace {

struct LengthSettings {
  int64_t least_requests;
  double service_times;  // that a run lasts
  double tolerance;
};

// Of a thousand requests, ten decide the 99th percentile: where latencies hardly rise with the rate, that puts the
// capacity anywhere within a factor of two. Capacities that are promised are judged by runs of many more.
constexpr LengthSettings settings_of(RunLength length) {
  switch (length) {
    case RunLength::brief:
      return {.least_requests = 200, .service_times = 4, .tolerance = 0.08};
    case RunLength::usual:
      return {.least_requests = 1000, .service_times = 8, .tolerance = 0.06};
    case RunLength::lengthy:
      return {.least_requests = 5000, .service_times = 8, .tolerance = 0.02};
  }
  return {};
}

constexpr bool takes_long_runs(Effort effort) {
  return effort == Effort::full || effort == Effort::long_curve;
}

constexpr RunLength length_of(Effort effort) {
  return takes_long_runs(effort) ? RunLength::lengthy : RunLength::brief;
}

constexpr bool draws_curve(Effort effort) {
  return effort == Effort::curve || effort == Effort::long_curve;
}

// Of the capacity: rates of a curve.
constexpr std::array shares_of_curve = {0.1, 0.25, 0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25};

// Other stretches of the traffic that capacity is also found for.
constexpr int64_t other_parts = 2;

// Equal engines need not all be simulated: at most 8 of them, and at least 2, until there are requests enough.
ServingLayout part_of(const ServingLayout& layout, Effort effort, double requests_of_replica) {
  constexpr double enough_requests = 12'000;
  ServingLayout part = layout;
  if (!layout.decode) {
    const auto wanted = static_cast<int64_t>(std::clamp(enough_requests / requests_of_replica, 2.0, 8.0));
    part.pool.replicas = std::min<int64_t>(layout.pool.replicas, effort == Effort::full ? wanted : 1);
  } else {
    const int64_t equal = std::gcd(layout.pool.replicas, layout.decode->replicas);
    part.pool.replicas /= equal;
    part.decode->replicas /= equal;
  }
  return part;
}

LatencyGoals goals_of(const std::vector<LatencySlo>& slos) {
  LatencyGoals goals;
  for (const LatencySlo& slo : slos) {
    if (slo.metric == SloMetric::ttft) goals.ttft_ms = slo.limit_ms;
    if (slo.metric == SloMetric::tpot) goals.tpot_ms = slo.limit_ms;
    if (slo.metric == SloMetric::e2el) goals.e2el_ms = slo.limit_ms;
  }
  return goals;
}

bool tries_host_memory(const LayoutChoices& choices) {
  return choices.host_as_gpu ||
         std::any_of(choices.host_gib.begin(), choices.host_gib.end(), [](int64_t gib) { return gib > 0; });
}

bool limits_waiting(const LatencySlo& slo) {
  return slo.metric == SloMetric::ttft || slo.metric == SloMetric::e2el;
}

// Without a limit on waiting, a queue that grows for ever would go unseen: in a run of so many seconds nobody may wait
// longer than a twentieth of it.
bool keeps_up(const ServingMetrics& metrics, const std::vector<double>& percentiles, double span_s) {
  constexpr double most_waiting = 0.05;
  const auto place = std::find(percentiles.begin(), percentiles.end(), 99.0);
  ensure(place != percentiles.end(), "the 99th percentile is always asked for");
  const double waited_ms = metrics.queue.percentiles_ms.at(static_cast<size_t>(place - percentiles.begin()));
  return waited_ms / 1e3 <= most_waiting * span_s;
}

// Thrown by an observer: the run breaks a limit whatever comes.
struct LimitIsLost {};

// Ends a run as soon as so many of its requests are late that no others could bring the percentile back. Percentiles
// are as numpy has them: of n values, the one at place floor(q (n - 1)) is not above it. Fewer values, such as those
// of requests with more than one token, need no more that are late.
class LateRequests final : public RunObserver {
 public:
  LateRequests(const std::vector<LatencySlo>& slos, int64_t requests) {
    for (const LatencySlo& slo : slos) {
      if (slo.metric == SloMetric::itl) continue;
      const auto place = static_cast<int64_t>(slo.percentile / 100 * static_cast<double>(requests - 1));
      limits_.push_back({.metric = slo.metric,
                         .most = static_cast<Picoseconds>(std::min(slo.limit_ms * 1e9 * (1 + 1e-9), 9e18)),
                         .until_lost = requests - place});
    }
  }

  void request_ended(const RequestRecord& record) override {
    if (record.outcome != RequestOutcome::completed) return;
    for (Limit& limit : limits_) {
      const Picoseconds took = limit.metric == SloMetric::ttft   ? record.ttft()
                               : limit.metric == SloMetric::tpot ? record.tpot()
                                                                 : record.e2el();
      if (took > limit.most && --limit.until_lost == 0) throw LimitIsLost();
    }
  }

 private:
  struct Limit {
    SloMetric metric;
    Picoseconds most;
    int64_t until_lost;
  };
  std::vector<Limit> limits_;
};

// Keeps the steps of a run, so that only those of runs that are shown are metered.
class StepLog final : public RunObserver {
 public:
  void step_ran(const StepRecord& step) override { steps_.push_back(step); }
  void replay(RunObserver& observer) const {
    for (const StepRecord& step : steps_) observer.step_ran(step);
  }

 private:
  std::vector<StepRecord> steps_;
};

// Output tokens that come out in the second half of the time in which requests arrive: neither the beginning of a run,
// with its empty batches, nor its end, when nobody comes any more, says what a queue that does not end would see.
class SteadyOutput final : public RunObserver {
 public:
  explicit SteadyOutput(double arrivals_s)
      : begin_(to_picoseconds(Seconds(arrivals_s / 2))), end_(to_picoseconds(Seconds(arrivals_s))) {}
  void request_ended(const RequestRecord& record) override {
    if (record.outcome != RequestOutcome::completed) return;
    const Picoseconds within = std::min(record.last_token, end_) - std::max(record.first_token, begin_);
    if (within <= 0) return;
    tokens_ += static_cast<double>(record.output_tokens) * static_cast<double>(within) /
               static_cast<double>(std::max<Picoseconds>(1, record.last_token - record.first_token));
  }
  double tokens_per_s() const { return tokens_ / to_seconds(end_ - begin_).value(); }

 private:
  Picoseconds begin_, end_;
  double tokens_ = 0;
};

// A step of some decodes in the middle of their outputs.
Estimate usual_step(const ReadyEngine& engine, const TrafficLengths& lengths) {
  constexpr int64_t usual_batch = 32;
  const int64_t batch = std::min(usual_batch, engine.group.config.options.max_num_seqs);
  const auto context = static_cast<int64_t>(lengths.mean_input + lengths.mean_output / 2);
  return engine.group.times->step_seconds(
      {.decodes = batch, .decode_context_tokens = batch * context, .longest_decode_context = context, .prompts = {}});
}

}  // namespace

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
  share.usual *= shape.ttft_slack * std::sqrt(shape.fresh_share * std::sqrt(shape.fresh_share));
  share.low *= shape.ttft_slack * (alone ? 1 : std::sqrt(shape.ttft_slack)) * shape.fresh_share;
  share.high *= std::sqrt(shape.ttft_slack);
  return share;
}

std::string_view effort_name(Effort effort) {
  switch (effort) {
    case Effort::closed_form:
      return "closed_form";
    case Effort::quick:
      return "quick";
    case Effort::ranged:
      return "ranged";
    case Effort::curve:
      return "curve";
    case Effort::long_curve:
      return "long_curve";
    case Effort::full:
      return "full";
  }
  return "";
}

const PlanRun* PlanPoint::at_capacity() const {
  const PlanRun* best = nullptr;
  for (const PlanRun& run : runs) {
    if (run.attained && run.rate <= capacity.value) best = &run;
  }
  return best;
}

const PlanRun* PlanPoint::at_rate(double rate) const {
  const auto found = std::find_if(runs.begin(), runs.end(), [&](const PlanRun& run) { return run.rate == rate; });
  return found == runs.end() ? nullptr : &*found;
}

LayoutJudgement LayoutSimulator::judge(const ServingLayout& layout) {
  if (check_wanted_) check_wanted_();
  constexpr size_t most_kept = 4096;
  ServingLayout one = layout;
  one.pool.replicas = 1;
  if (one.decode) one.decode->replicas = 1;
  const std::string key = one.key();
  auto found = bounds_.find(key);
  if (found == bounds_.end()) {
    if (bounds_.size() >= most_kept) bounds_.clear();
    found = bounds_.emplace(key, engine_bounds(*question_, *traffic_, shelf_->engines(layout))).first;
  }
  return judge_layout(found->second, layout);
}

// Requests that all limits are about decode for as long as those allow.
int64_t LayoutSimulator::requests_for(Effort effort, double rate) const {
  return requests_for(length_of(effort), rate);
}

int64_t LayoutSimulator::requests_for(RunLength length, double rate) const {
  constexpr double usual_tpot_s = 0.05;
  double tpot_s = usual_tpot_s;
  for (const LatencySlo& slo : question_->slos) {
    if (slo.metric == SloMetric::tpot) tpot_s = slo.limit_ms / 1e3;
  }
  const LengthSettings settings = settings_of(length);
  const double span_s = settings.service_times * traffic_->lengths().mean_output * tpot_s;
  constexpr int64_t most_requests = 200'000;  // only separate pools of very many engines come near
  return std::clamp(static_cast<int64_t>(std::ceil(std::min(rate * span_s, 1e12))), settings.least_requests,
                    most_requests);
}

ServingLayout LayoutSimulator::long_part(const ServingLayout& layout, double rate) const {
  const double rate_of_replica = rate / static_cast<double>(layout.pool.replicas);
  return part_of(layout, Effort::full, static_cast<double>(requests_for(RunLength::usual, rate_of_replica)));
}

ServingRunRequest LayoutSimulator::run_request(const ServingLayout& layout, const LayoutEngines& engines, double rate,
                                               int64_t requests, int64_t part) const {
  ServingRunRequest request;
  const std::string& engine = layout.pool.engine.engine;
  request.config.router = usual_router(engine, 1);
  request.config.replicas.assign(static_cast<size_t>(layout.pool.replicas), engines.pool->group.config);
  if (layout.pool.host_gib > 0) {
    request.config.kv_tiers =
        server_memory_tier(engines.pool->group, layout.pool.replicas, Bytes(host_cache_bytes(layout.pool)));
  }
  if (layout.decode) {
    request.config.replicas.insert(request.config.replicas.end(), static_cast<size_t>(layout.decode->replicas),
                                   engines.decode->group.config);
    const auto pool_of = [&](const EnginePool& pool) {
      const std::optional<Node>& node = question_->hardware_of(pool.engine.device).node;
      ensure(node.has_value(), "prompts are computed apart only where a link is known");
      // Other devices are in other nodes.
      const int64_t apart = layout.is_mixed() ? node->device_count + 1 : layout.devices();
      return KvPool{.replicas = pool.replicas,
                    .devices = pool.engine.devices(),
                    .device_bandwidth = transfer_bandwidth_per_device(*node, apart).value_or(pair_bandwidth(*node))};
    };
    Disaggregation between =
        disaggregation_between(pool_of(layout.pool), pool_of(*layout.decode), usual_transfer_latency);
    between.decode_router = "least_outstanding";
    between.kv_bytes_per_token = kv_bytes_per_token(question_->model, layout.pool.engine.kv_dtype).value();
    between.first_token = usual_first_token(engine);
    request.config.disaggregation = std::move(between);
  }
  request.load = [this, rate, requests, first = first_request(requests, part)](uint64_t /*seed*/) {
    return traffic_->at_rate(rate, requests, first);
  };
  request.goals = goals_of(question_->slos);
  request.percentiles = slo_percentiles(question_->slos);
  request.step_bounds = false;
  return request;
}

// All runs of one evaluation.
struct LayoutSimulator::Trial {
  const LayoutSimulator& simulator;
  const ServingLayout& layout;  // what is simulated
  const LayoutEngines& engines;
  RunLength length;
  double share;  // of the rate that what is simulated gets

  StepBound usual_bound() const { return simulator.question_->pessimistic ? StepBound::high : StepBound::value; }

  // Nothing where it was ended because it is sure to break a limit, unless it is to go `to_its_end`.
  std::optional<PlanRun> run(double rate, bool to_its_end = false) const {
    return run(rate, usual_bound(), 0, to_its_end, draw_is_known());
  }
  int64_t requests_at(double rate) const { return simulator.requests_for(length, rate * share); }
  // Whether every limit is kept; `part` of the traffic: 0 is its usual one.
  bool attains(double rate, StepBound bound, int64_t part) const {
    const std::optional<PlanRun> found = run(rate, bound, part, false, false);
    return found && found->attained;
  }

 private:
  std::optional<PlanRun> run(double rate, StepBound bound, int64_t part, bool to_its_end, bool metered) const {
    const ServingQuestion& question = *simulator.question_;
    const double own_rate = rate * share;
    const int64_t requests = requests_at(rate);
    ServingRunRequest request = simulator.run_request(layout, engines, own_rate, requests, part);
    request.config.bound = bound;
    StepLog steps;
    if (metered) request.observers.push_back(&steps);
    WantedCheck wanted(simulator.check_wanted_);
    if (simulator.check_wanted_) request.observers.push_back(&wanted);
    SteadyOutput steady(static_cast<double>(requests) / own_rate);
    request.observers.push_back(&steady);
    LateRequests late(question.slos, requests);
    if (!to_its_end && simulator.shortcuts_ == Shortcuts::taken) request.observers.push_back(&late);
    ServingMetrics metrics;
    try {
      metrics = run_serving(request).metrics;
    } catch (const LimitIsLost&) {
      return std::nullopt;
    }
    const auto all = static_cast<double>(metrics.completed + metrics.rejected);
    PlanRun result{.rate = rate,
                   .requests = metrics.completed + metrics.rejected,
                   .attained = true,
                   .achieved_ms = {},
                   .output_tokens_per_s = metrics.output_throughput / share,
                   .tokens_per_s_of_user = metrics.tpot.mean_ms > 0 ? 1e3 / metrics.tpot.mean_ms : 0,
                   .goodput = metrics.goodput.value_or(metrics.request_throughput) / share,
                   .failed_share = static_cast<double>(metrics.rejected) / all,
                   .computed_again = 1,
                   .joules_per_token = {}};
    bool waits = false;
    for (const LatencySlo& slo : question.slos) {
      const double achieved = achieved_ms(slo, metrics, request.percentiles);
      result.achieved_ms.push_back(achieved);
      const bool few_fail = result.failed_share <= 1 - slo.percentile / 100;
      result.attained = result.attained && achieved <= slo.limit_ms && few_fail;
      waits = waits || limits_waiting(slo);
    }
    if (question.joint_percent) {
      const double good = metrics.goodput.value_or(0) * metrics.duration_s;
      result.attained = good >= *question.joint_percent / 100 * all;
    }
    const bool keeps = keeps_up(metrics, request.percentiles, all / own_rate);
    if (!waits) result.attained = result.attained && keeps;
    // One that keeps up does so for ever: the end of the run, when requests have stopped coming, says nothing.
    const double lasts_s = result.attained || keeps ? all / own_rate : metrics.duration_s;
    result.output_tokens_per_s *= metrics.duration_s / lasts_s;
    result.goodput *= metrics.duration_s / lasts_s;
    if (!result.attained && !keeps) {
      result.output_tokens_per_s = std::max(result.output_tokens_per_s, steady.tokens_per_s() / share);
    }
    // Nobody is shown the energy of a run that breaks a limit, except those of curves.
    if (metered && (result.attained || to_its_end)) {
      result.joules_per_token = joules_per_token(steps, metrics, lasts_s);
    }
    // What host memory below the cache could save.
    if (length == RunLength::brief && layout.pool.host_gib == 0 && tries_host_memory(question.choices)) {
      const auto computed = static_cast<double>(metrics.input_tokens - metrics.cached_tokens);
      const int64_t first = simulator.first_request(requests, part);
      const auto fresh = static_cast<double>(simulator.traffic_->fresh_tokens(requests, first));
      result.computed_again = std::max(1.0, computed / fresh);
    }
    return result;
  }

  // Prompts first, as replicas are.
  std::vector<std::pair<const ReadyEngine*, int64_t>> pools() const {
    std::vector<std::pair<const ReadyEngine*, int64_t>> all = {{engines.pool, layout.pool.replicas}};
    if (layout.decode) all.emplace_back(engines.decode, layout.decode->replicas);
    return all;
  }
  bool draw_is_known() const {
    return engines.pool->draw() != nullptr && (engines.decode == nullptr || engines.decode->draw() != nullptr);
  }
  std::vector<StepWatts> replica_watts() const {
    std::vector<StepWatts> watts;
    for (const auto& [engine, replicas] : pools()) {
      watts.insert(watts.end(), static_cast<size_t>(replicas),
                   watts_of_replica(*engine->draw(), engine->group.config.options.lock_step_ranks));
    }
    return watts;
  }
  Headline joules_per_token(const StepLog& steps, const ServingMetrics& metrics, double lasts_s) const {
    EnergyMeter meter(replica_watts());
    steps.replay(meter);
    std::vector<MeteredBoards> boards;
    for (const auto& [engine, replicas] : pools()) {
      boards.push_back(engine->boards);
      boards.back().replicas = replicas;
    }
    const Estimate each =
        energy_account(meter, boards, FacilityRates(), metrics, exactly(lasts_s)).facility_joules_per_output_token;
    return {.value = each.value, .low = each.low, .high = each.high};
  }
};

// Latencies rise with the load from those of a request alone to the limits, which they reach at capacity.
PlanPoint LayoutSimulator::by_closed_form(PlanPoint point, const LayoutJudgement& judgement,
                                          const Estimate& step) const {
  const double most = judgement.most_requests_per_s;
  const ReachedShare share = usually_reached(point.layout, judgement.shape);
  point.capacity = {.value = most * share.usual, .low = most * share.low, .high = most * share.high};
  const bool at_rate = question_->rate && *question_->rate <= point.capacity.value;
  PlanRun run{.rate = at_rate ? *question_->rate : point.capacity.value, .attained = true, .achieved_ms = {}};
  const double load = run.rate / point.capacity.value;
  double token_ms = step.value * 1e3;
  for (size_t i = 0; i < question_->slos.size(); ++i) {
    const LatencySlo& slo = question_->slos[i];
    const double alone = std::min(judgement.alone_ms[i], slo.limit_ms);
    run.achieved_ms.push_back(alone + (slo.limit_ms - alone) * load * load);
    if (slo.metric == SloMetric::tpot) token_ms = run.achieved_ms.back();
  }
  run.output_tokens_per_s = run.rate * traffic_->lengths().mean_output;
  run.tokens_per_s_of_user = 1e3 / token_ms;
  run.goodput = run.rate;
  point.runs = {run};
  return point;
}

const LayoutSimulator::ShortRuns& LayoutSimulator::short_runs(const ServingLayout& layout, const Trial& trial,
                                                              double most, double usual) {
  constexpr size_t most_kept = 4096;
  const std::string key = layout.key();
  if (const auto found = short_runs_.find(key); found != short_runs_.end()) return found->second;
  if (short_runs_.size() >= most_kept) short_runs_.clear();
  ShortRuns& kept = short_runs_[key];
  const CapacitySearch search{
      .start = usual, .lowest = most / 100, .highest = most * 2, .tolerance = settings_of(RunLength::brief).tolerance};
  kept.capacity = highest_rate(search, [&](double rate) {
    // The slowest tells how near the layout comes to limits that it never keeps.
    const std::optional<PlanRun> run = trial.run(rate, rate <= search.lowest);
    if (run) kept.runs.push_back(*run);
    return run && run->attained;
  });
  return kept;
}

// As few of the runs as possible are lengthy: those of the usual length tell where to begin.
const LayoutSimulator::LongRuns& LayoutSimulator::long_runs(const ServingLayout& layout, const Trial& usual,
                                                            const Trial& lengthy, const CapacitySearch& search) {
  constexpr size_t most_kept = 4096;
  const std::string key = layout.key();
  if (const auto found = long_runs_.find(key); found != long_runs_.end()) return found->second;
  if (long_runs_.size() >= most_kept) long_runs_.clear();
  LongRuns& kept = long_runs_[key];
  CapacitySearch next = search;
  const auto be_within = [&](double tolerance) {
    next.tolerance = tolerance;
    next.first_step = 1 + 1.5 * tolerance;
  };
  if (usual.requests_at(search.start) < lengthy.requests_at(search.start)) {
    be_within(settings_of(RunLength::usual).tolerance);
    kept.usual_capacity = highest_rate(next, [&](double rate) { return usual.attains(rate, usual.usual_bound(), 0); });
    if (kept.usual_capacity > 0) next.start = kept.usual_capacity;
  }
  be_within(settings_of(RunLength::lengthy).tolerance);
  kept.capacity = highest_rate(next, [&](double rate) {
    const std::optional<PlanRun> run = lengthy.run(rate, rate <= search.lowest);
    if (run) kept.runs.push_back(*run);
    return run && run->attained;
  });
  if (kept.usual_capacity <= 0) kept.usual_capacity = kept.capacity;
  return kept;
}

// Shares of the capacity, and the rate asked for.
std::vector<double> LayoutSimulator::rates_of_curve(double capacity) const {
  std::vector<double> rates;
  if (capacity <= 0) return rates;
  for (const double share : shares_of_curve) rates.push_back(capacity * share);
  if (question_->rate && *question_->rate <= rates.back()) rates.push_back(*question_->rate);
  std::sort(rates.begin(), rates.end());
  rates.erase(std::unique(rates.begin(), rates.end()), rates.end());
  return rates;
}

// One layout by runs: the rate that it sustains, and the ends of the interval of that.
class LayoutSimulator::Evaluation {
 public:
  // The `point` has its layout and effort, no run yet. `step`: its usual one.
  Evaluation(LayoutSimulator& simulator, const LayoutEngines& engines, const LayoutJudgement& judgement,
             const Estimate& step, PlanPoint point)
      : simulator_(simulator),
        question_(*simulator.question_),
        engines_(engines),
        most_(judgement.most_requests_per_s),
        usual_(most_ * usually_reached(point.layout, judgement.shape).usual),
        step_(step),
        effort_(point.effort),
        short_part_(part_of(point.layout, Effort::quick, 1)),
        long_part_(simulator.long_part(point.layout, most_)),
        simulated_(takes_long_runs(effort_) ? long_part_ : short_part_),
        point_(std::move(point)) {}

  PlanPoint evaluated() {
    find_capacity();
    if (draws_curve(effort_)) {
      run_curve();
      return std::move(point_);
    }
    run_at_asked_rate();
    const bool by_slow_end = question_.is_judged_by_slow_end(point_.layout) && !question_.pessimistic;
    const bool wants_interval = effort_ != Effort::quick || by_slow_end;
    if (wants_interval && capacity() > 0 && short_capacity_ > 0) find_interval();
    return std::move(point_);
  }

 private:
  double capacity() const { return point_.capacity.value; }

  Trial trial_of(const ServingLayout& part, RunLength length) const {
    return {.simulator = simulator_,
            .layout = part,
            .engines = engines_,
            .length = length,
            .share = static_cast<double>(part.devices()) / static_cast<double>(point_.layout.devices())};
  }

  CapacitySearch near(double start, double tolerance) const {
    return {.start = start,
            .lowest = most_ / 100,
            .highest = most_ * 2,
            .tolerance = tolerance,
            .first_step = 1 + 1.5 * tolerance};
  }

  void find_capacity() {
    const ShortRuns& quick =
        simulator_.short_runs(point_.layout, trial_of(short_part_, RunLength::brief), most_, usual_);
    short_capacity_ = usual_capacity_ = quick.capacity;
    double highest = short_capacity_;
    point_.runs = quick.runs;
    if (takes_long_runs(effort_) || draws_curve(effort_)) {
      const double start = short_capacity_ > 0 ? short_capacity_ : most_ * 0.1;
      const LongRuns& found = simulator_.long_runs(point_.layout, trial_of(long_part_, RunLength::usual),
                                                   trial_of(long_part_, RunLength::lengthy), near(start, 1));
      highest = found.capacity;
      usual_capacity_ = found.usual_capacity;
      point_.runs = found.runs;
    }
    point_.capacity = {.value = highest, .low = highest, .high = highest};
  }

  // The run at capacity is the one that found it, so that everything shown of it is the same.
  void run_curve() {
    const std::vector<PlanRun> known = std::exchange(point_.runs, {});
    // Far below the capacity hardly anybody waits: fewer requests tell as much.
    constexpr double far_below = 0.6;
    for (const double rate : simulator_.rates_of_curve(capacity())) {
      const auto same = std::find_if(known.begin(), known.end(), [&](const PlanRun& run) { return run.rate == rate; });
      const bool is_long = takes_long_runs(effort_);
      const RunLength length = !is_long                        ? RunLength::brief
                               : rate < capacity() * far_below ? RunLength::usual
                                                               : RunLength::lengthy;
      point_.runs.push_back(
          same != known.end() ? *same : *trial_of(is_long ? long_part_ : short_part_, length).run(rate, true));
    }
  }

  void run_at_asked_rate() {
    const std::optional<double>& rate = question_.rate;
    if (rate && capacity() >= *rate && point_.at_rate(*rate) == nullptr) {
      point_.runs.push_back(*trial_of(simulated_, length_of(effort_)).run(*rate, true));
    }
    std::sort(point_.runs.begin(), point_.runs.end(),
              [](const PlanRun& a, const PlanRun& b) { return a.rate < b.rate; });
  }

  double capacity_with(const Trial& trial, StepBound bound, int64_t part, double start) const {
    return highest_rate(near(start, settings_of(RunLength::usual).tolerance),
                        [&](double rate) { return trial.attains(rate, bound, part); });
  }

  void find_interval() {
    // One of many replicas tells as well what slower and faster steps change.
    constexpr int64_t few = 2;
    const ServingLayout& alone = simulated_.devices() > few * short_part_.devices() ? short_part_ : simulated_;
    const Trial ends = trial_of(alone, effort_ == Effort::full ? RunLength::usual : RunLength::brief);
    const bool is_known = alone == simulated_ && effort_ == Effort::full;
    const double usual = is_known ? usual_capacity_ : capacity_with(ends, ends.usual_bound(), 0, capacity());
    double low = 1, high = 1;  // of the capacity
    if (usual > 0 && !question_.pessimistic) {
      low = std::min(1.0, capacity_with(ends, StepBound::high, 0, usual * step_.value / step_.high) / usual);
    }
    point_.capacity.low = capacity() * low;
    if (effort_ == Effort::quick) return;
    if (usual > 0) {
      const double faster = step_.low > 0 ? std::min(step_.value / step_.low, 2.0) : 1.15;
      high = std::max(1.0, capacity_with(ends, StepBound::low, 0, usual * faster) / usual);
    }
    // Which requests come is independent of the step times.
    const double spread = spread_among_requests();
    point_.capacity.low = std::max(0.0, capacity() - portable_hypot(capacity() * (1 - low), spread));
    point_.capacity.high = capacity() + portable_hypot(capacity() * (high - 1), spread);
  }

  // 90% of the requests that might come, as far as a few draws tell.
  double spread_among_requests() const {
    if (effort_ != Effort::full) return 0;
    const Trial trial = trial_of(simulated_, RunLength::usual);
    double squares = 0;
    for (int64_t part = 1; part <= other_parts; ++part) {
      const double apart = capacity_with(trial, trial.usual_bound(), part, capacity()) - capacity();
      squares += apart * apart;
    }
    return normal_half_width_90 * std::sqrt(squares / static_cast<double>(other_parts));
  }

  LayoutSimulator& simulator_;
  const ServingQuestion& question_;
  const LayoutEngines& engines_;
  double most_, usual_;  // requests/s by closed form: the bound, and what such layouts reach of it
  Estimate step_;
  Effort effort_;
  ServingLayout short_part_, long_part_, simulated_;
  PlanPoint point_;
  double short_capacity_ = 0;
  double usual_capacity_ = 0;  // by runs of the usual length, which ends of the interval are compared with
};

PlanPoint LayoutSimulator::evaluate(const ServingLayout& layout, Effort effort) {
  PlanPoint point{.layout = layout, .effort = effort, .capacity = {}, .runs = {}};
  const LayoutEngines engines = shelf_->engines(layout);
  const LayoutJudgement judgement = judge_layout(*question_, *traffic_, layout, engines);
  const bool is_sure_to_fail = !engines.start() || judgement.most_requests_per_s <= 0;
  if (is_sure_to_fail || (judgement.pruned && shortcuts_ == Shortcuts::taken)) return point;
  const ReadyEngine& decodes = engines.decode != nullptr ? *engines.decode : *engines.pool;
  const SchedulerOptions& options = decodes.group.config.options;
  point.kv_tokens = options.num_gpu_blocks * options.block_size;
  const Estimate step = usual_step(decodes, traffic_->lengths());
  if (effort == Effort::closed_form) return by_closed_form(std::move(point), judgement, step);
  return Evaluation(*this, engines, judgement, step, std::move(point)).evaluated();
}

}  // namespace foretoken
