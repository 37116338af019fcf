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
#include "plan/serving/pooled_latencies.h"
#include "plan/serving/trial_observers.h"
#include "plan/serving/wanted_check.h"
#include "serving/energy/energy_account.h"
#include "serving/engine/engine_setup.h"
#include "serving/engine/engine_tiers.h"

namespace foretoken {
namespace {

struct LengthSettings {
  int64_t least_requests;
  double service_times;  // that a run lasts
  double tolerance;      // of the capacity of one stretch
};

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

// How a rate is judged: by so many runs, each of a stretch of its own of the traffic.
struct Judging {
  RunLength length;
  int64_t stretches;
  bool surely;  // the limits hold with a probability of 95%, whatever requests of the kind come
};

// Of a thousand requests, ten decide the 99th percentile: where latencies hardly rise with the rate, that puts the
// capacity anywhere within a factor of two. Some thousands tell finalists apart, since all of them get the same
// requests; what is promised of the best is judged by many more.
constexpr Judging judging_of(Effort effort) {
  switch (effort) {
    case Effort::full:
      return {.length = RunLength::lengthy, .stretches = 1, .surely = false};
    case Effort::promised:
    case Effort::long_curve:
      return {.length = RunLength::lengthy, .stretches = 6, .surely = true};
    case Effort::closed_form:
    case Effort::quick:
    case Effort::ranged:
    case Effort::curve:
      break;
  }
  return {.length = RunLength::brief, .stretches = 1, .surely = false};
}

// Capacity by several stretches.
constexpr double pooled_tolerance = 0.02;

// Of the capacity by one stretch, what several are sure to sustain.
constexpr double usually_promised = 0.9;

constexpr bool takes_long_runs(Effort effort) {
  return effort == Effort::full || effort == Effort::promised || effort == Effort::long_curve;
}

constexpr bool draws_curve(Effort effort) {
  return effort == Effort::curve || effort == Effort::long_curve;
}

// What is promised; curves are drawn around it.
constexpr bool needs_promise(Effort effort) {
  return effort == Effort::promised || draws_curve(effort);
}

// Of the capacity: rates of a curve.
constexpr std::array shares_of_curve = {0.1, 0.25, 0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25};

// Stretches of the traffic that capacity is found for one by one, to see how much they differ.
constexpr int64_t compared_stretches = 3;

// Equal engines need not all be simulated.
ServingLayout part_of(const ServingLayout& layout, int64_t most_replicas) {
  ServingLayout part = layout;
  if (!layout.decode) {
    part.pool.replicas = std::min(layout.pool.replicas, most_replicas);
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

// How far the capacity is, from one rate: the search for it begins near. Latencies rise about with the square of the
// rate there, and late requests much faster.
constexpr double farthest_guess = 1.5;

double reach_of(const PlanRun& run, const std::vector<LatencySlo>& slos) {
  double used = 0;  // of the limit that is nearest
  for (size_t i = 0; i < slos.size(); ++i) used = std::max(used, run.achieved_ms[i] / slos[i].limit_ms);
  const double reach = used > 0 ? std::sqrt(1 / used) : farthest_guess;
  return run.attained ? std::clamp(reach, 1.0, farthest_guess)
                      : std::clamp(reach, 1 / farthest_guess, 1 - pooled_tolerance / 2);
}

// Of runs that were lost after this share of their requests.
double reach_of_lost(double ended_share) {
  return std::max(std::sqrt(std::sqrt(std::sqrt(ended_share))), 1 / farthest_guess);
}

// A step of some decodes in the middle of their outputs.
Estimate usual_step(const ReadyEngine& engine, const TrafficLengths& lengths) {
  constexpr int64_t usual_batch = 32;
  const int64_t batch = std::min(usual_batch, engine.group.config.options.max_num_seqs);
  const auto context = static_cast<int64_t>(lengths.mean_input + lengths.mean_output / 2);
  return engine.group.times->step_seconds(
      {.decodes = batch, .decode_context_tokens = batch * context, .longest_decode_context = context, .prompts = {}});
}

}  // namespace

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
    case Effort::promised:
      return "promised";
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
  return requests_for(judging_of(effort).length, rate);
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
  // At most 8, and at least 2, until there are requests enough.
  constexpr double enough_requests = 12'000;
  const double rate_of_replica = rate / static_cast<double>(layout.pool.replicas);
  const auto requests = static_cast<double>(requests_for(RunLength::usual, rate_of_replica));
  return part_of(layout, static_cast<int64_t>(std::clamp(enough_requests / requests, 2.0, 8.0)));
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

struct LayoutSimulator::TriedRun {
  std::optional<PlanRun> run;       // nothing where it was ended because it is sure to break a limit
  double reach = 1;                 // TriedRate::reach
  std::optional<double> used = {};  // TriedRate::used
};

// All runs of one evaluation.
struct LayoutSimulator::Trial {
  const LayoutSimulator& simulator;
  const ServingLayout& layout;  // what is simulated
  const LayoutEngines& engines;
  Judging judging;
  double share;  // of the rate that what is simulated gets

  StepBound usual_bound() const { return simulator.question_->pessimistic ? StepBound::high : StepBound::value; }

  // All stretches at a rate, judged together, until they are sure to break a limit.
  TriedRun run(double rate, bool to_its_end = false) const {
    PooledLatencies pool;
    std::vector<Stretch> runs;
    for (int64_t part = 0; part < judging.stretches; ++part) {
      LateRequests late(slos(), requests_at(rate) * judging.stretches);
      LatencyLog log(requests_at(rate));
      std::optional<Stretch> one = run_stretch({.rate = rate,
                                                .bound = usual_bound(),
                                                .part = part,
                                                .metered = part == 0 && draw_is_known(),
                                                .is_lost = to_its_end ? nullptr : &late,
                                                .log = &log});
      if (!one) return lost_after(pool, late.ended_share());
      pool.add(log);
      runs.push_back(std::move(*one));
      if (!to_its_end && is_sure_to_be_late(pool)) return {.run = {}, .used = std::max(used_of(pool), least_of_lost)};
    }
    const PlanRun all = runs.size() == 1 && !judging.surely ? runs.front().run : pooled(runs, pool);
    TriedRun tried{.run = all, .reach = reach_of(all, slos())};
    if (judging.surely)
      tried.used = all.attained ? std::min(used_of(pool), 1.0) : std::max(used_of(pool), least_of_lost);
    return tried;
  }
  PlanRun run_to_its_end(double rate) const { return *run(rate, true).run; }

  // One stretch of the traffic: 0 is the usual one.
  TriedRate try_stretch(double rate, StepBound bound, int64_t part) const {
    LateRequests late(slos(), requests_at(rate));
    const auto found = run_stretch({.rate = rate, .bound = bound, .part = part, .is_lost = &late});
    if (!found) return {.holds = false, .reach = reach_of_lost(late.ended_share())};
    return {.holds = found->run.attained, .reach = reach_of(found->run, slos())};
  }
  int64_t requests_at(double rate) const { return simulator.requests_for(judging.length, rate * share); }

 private:
  struct StretchOfRun {
    double rate = 0;
    StepBound bound = StepBound::value;
    int64_t part = 0;
    bool metered = false;
    LateRequests* is_lost = nullptr;  // null = it goes to its end
    LatencyLog* log = nullptr;        // null = nobody asks for it
  };
  struct Stretch {
    PlanRun run;
    bool keeps_up = false;
  };

  // What is used where a limit is broken.
  static constexpr double least_of_lost = 1.001;

  const std::vector<LatencySlo>& slos() const { return simulator.question_->slos; }

  // The runs before, and one that was ended when so many of its requests were late as may be of all stretches, after
  // this share of all their requests.
  TriedRun lost_after(const PooledLatencies& before, double ended_share) const {
    TriedRun tried{.run = {}, .reach = reach_of_lost(ended_share)};
    if (!judging.surely) return tried;
    const double share_before = static_cast<double>(before.runs()) / static_cast<double>(judging.stretches);
    const double late =
        1 + share_before * most_used([&](std::span<const LatencySlo> limits) { return before.late_share(limits); });
    tried.used = std::max(late / (share_before + ended_share), least_of_lost);
    return tried;
  }

  // Of the late requests that the limits leave, as surely as the runs so far tell; of the limit that leaves least.
  double used_of(const PooledLatencies& pool) const {
    return most_used([&](std::span<const LatencySlo> limits) { return pool.late_share_at_most(limits); });
  }
  bool is_sure_to_be_late(const PooledLatencies& pool) const {
    if (!judging.surely || simulator.shortcuts_ != Shortcuts::taken) return false;
    const auto stretches = static_cast<size_t>(judging.stretches);
    return pool.runs() < stretches && most_used([&](std::span<const LatencySlo> limits) {
                                        return pool.late_share_at_most_of(stretches, limits);
                                      }) > least_of_lost;
  }
  double most_used(const std::function<double(std::span<const LatencySlo>)>& late_share) const {
    if (const std::optional<double>& joint = simulator.question_->joint_percent) {
      return late_share(slos()) / (1 - *joint / 100);
    }
    double used = 0;
    for (const LatencySlo& slo : slos()) {
      if (slo.metric == SloMetric::itl) continue;
      used = std::max(used, late_share({&slo, 1}) / (1 - slo.percentile / 100));
    }
    return used;
  }

  // Means of the runs, with percentiles of all their requests.
  PlanRun pooled(const std::vector<Stretch>& runs, const PooledLatencies& pool) const {
    PlanRun all = runs.front().run;
    const auto mean_of = [&](double PlanRun::*member) {
      double sum = 0;
      for (const Stretch& one : runs) sum += one.run.*member;
      return sum / static_cast<double>(runs.size());
    };
    for (double PlanRun::*member :
         {&PlanRun::output_tokens_per_s, &PlanRun::tokens_per_s_of_user, &PlanRun::goodput, &PlanRun::failed_share}) {
      all.*member = mean_of(member);
    }
    all.requests = 0;
    for (const Stretch& one : runs) all.requests += one.run.requests;
    for (size_t i = 0; i < slos().size(); ++i) {
      if (slos()[i].metric != SloMetric::itl) {
        all.achieved_ms[i] = pool.percentile_ms(slos()[i]);
        continue;
      }
      // Gaps between tokens are too many to be kept.
      all.achieved_ms[i] = 0;
      for (const Stretch& one : runs) all.achieved_ms[i] += one.run.achieved_ms[i] / static_cast<double>(runs.size());
    }
    all.attained = keeps_limits(all, pool) &&
                   (limits_any_waiting() ||
                    std::all_of(runs.begin(), runs.end(), [](const Stretch& one) { return one.keeps_up; }));
    return all;
  }

  bool limits_any_waiting() const { return std::any_of(slos().begin(), slos().end(), limits_waiting); }

  bool keeps_limits(const PlanRun& all, const PooledLatencies& pool) const {
    const auto late = [&](std::span<const LatencySlo> limits) {
      return judging.surely ? pool.late_share_at_most(limits) : pool.late_share(limits);
    };
    if (const std::optional<double>& joint = simulator.question_->joint_percent) {
      return (1 - late(slos())) * (1 - all.failed_share) >= *joint / 100;
    }
    for (size_t i = 0; i < slos().size(); ++i) {
      const LatencySlo& slo = slos()[i];
      const double may_be_late = 1 - slo.percentile / 100;
      if (all.achieved_ms[i] > slo.limit_ms || all.failed_share > may_be_late) return false;
      constexpr double rounding = 1e-12;
      if (judging.surely && late({&slo, 1}) > may_be_late + rounding) return false;
    }
    return true;
  }

  std::optional<Stretch> run_stretch(const StretchOfRun& of) const {
    const ServingQuestion& question = *simulator.question_;
    const double own_rate = of.rate * share;
    const int64_t requests = requests_at(of.rate);
    ServingRunRequest request = simulator.run_request(layout, engines, own_rate, requests, of.part);
    request.config.bound = of.bound;
    StepLog steps;
    if (of.metered) request.observers.push_back(&steps);
    if (of.log != nullptr) request.observers.push_back(of.log);
    WantedCheck wanted(simulator.check_wanted_);
    if (simulator.check_wanted_) request.observers.push_back(&wanted);
    SteadyOutput steady(static_cast<double>(requests) / own_rate);
    request.observers.push_back(&steady);
    const bool may_end = of.is_lost != nullptr && simulator.shortcuts_ == Shortcuts::taken;
    if (may_end) request.observers.push_back(of.is_lost);
    ServingMetrics metrics;
    try {
      metrics = run_serving(request).metrics;
    } catch (const LimitIsLost&) {
      return std::nullopt;
    }
    const auto all = static_cast<double>(metrics.completed + metrics.rejected);
    PlanRun result{.rate = of.rate,
                   .requests = metrics.completed + metrics.rejected,
                   .attained = true,
                   .achieved_ms = {},
                   .output_tokens_per_s = metrics.output_throughput / share,
                   .tokens_per_s_of_user = metrics.tpot.mean_ms > 0 ? 1e3 / metrics.tpot.mean_ms : 0,
                   .goodput = metrics.goodput.value_or(metrics.request_throughput) / share,
                   .failed_share = static_cast<double>(metrics.rejected) / all,
                   .computed_again = 1,
                   .joules_per_token = {}};
    for (const LatencySlo& slo : question.slos) {
      const double achieved = achieved_ms(slo, metrics, request.percentiles);
      result.achieved_ms.push_back(achieved);
      const bool few_fail = result.failed_share <= 1 - slo.percentile / 100;
      result.attained = result.attained && achieved <= slo.limit_ms && few_fail;
    }
    if (question.joint_percent) {
      const double good = metrics.goodput.value_or(0) * metrics.duration_s;
      result.attained = good >= *question.joint_percent / 100 * all;
    }
    const bool keeps = keeps_up(metrics, request.percentiles, all / own_rate);
    if (!limits_any_waiting()) result.attained = result.attained && keeps;
    // One that keeps up does so for ever: the end of the run, when requests have stopped coming, says nothing.
    const double lasts_s = result.attained || keeps ? all / own_rate : metrics.duration_s;
    result.output_tokens_per_s *= metrics.duration_s / lasts_s;
    result.goodput *= metrics.duration_s / lasts_s;
    if (!result.attained && !keeps) {
      result.output_tokens_per_s = std::max(result.output_tokens_per_s, steady.tokens_per_s() / share);
    }
    // Nobody is shown the energy of a run that breaks a limit, except those of curves.
    if (of.metered && (result.attained || of.is_lost == nullptr || judging.stretches > 1)) {
      result.joules_per_token = joules_per_token(steps, metrics, lasts_s);
    }
    // What host memory below the cache could save.
    if (judging.length == RunLength::brief && layout.pool.host_gib == 0 && tries_host_memory(question.choices)) {
      const auto computed = static_cast<double>(metrics.input_tokens - metrics.cached_tokens);
      const int64_t first = simulator.first_request(requests, of.part);
      const auto fresh = static_cast<double>(simulator.traffic_->fresh_tokens(requests, first));
      result.computed_again = std::max(1.0, computed / fresh);
    }
    return Stretch{.run = std::move(result), .keeps_up = keeps};
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

TriedRate LayoutSimulator::KeptRuns::added(const TriedRun& tried) {
  if (tried.run) runs.push_back(*tried.run);
  return {.holds = tried.run && tried.run->attained, .reach = tried.reach, .used = tried.used};
}

const LayoutSimulator::RelativeInterval& LayoutSimulator::interval(const std::string& name,
                                                                   const std::function<RelativeInterval()>& find) {
  constexpr size_t most_kept = 4096;
  if (const auto found = intervals_.find(name); found != intervals_.end()) return found->second;
  if (intervals_.size() >= most_kept) intervals_.clear();
  const RelativeInterval within = find();
  return intervals_[name] = within;
}

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

const LayoutSimulator::KeptRuns& LayoutSimulator::short_runs(const ServingLayout& layout, const Trial& trial,
                                                             double most, double usual) {
  constexpr size_t most_kept = 4096;
  const std::string key = layout.key();
  if (const auto found = short_runs_.find(key); found != short_runs_.end()) return found->second;
  if (short_runs_.size() >= most_kept) short_runs_.clear();
  KeptRuns kept;
  const CapacitySearch search{
      .start = usual, .lowest = most / 100, .highest = most * 2, .tolerance = settings_of(RunLength::brief).tolerance};
  kept.capacity = highest_rate(search, [&](double rate) {
    // The slowest tells how near the layout comes to limits that it never keeps.
    return kept.added(trial.run(rate, rate <= search.lowest));
  });
  return short_runs_[key] = std::move(kept);
}

const LayoutSimulator::KeptRuns& LayoutSimulator::pooled_runs(const std::string& name, const Trial& trial,
                                                              const CapacitySearch& search) {
  constexpr size_t most_kept = 4096;
  if (const auto found = pooled_runs_.find(name); found != pooled_runs_.end()) return found->second;
  if (pooled_runs_.size() >= most_kept) pooled_runs_.clear();
  KeptRuns kept;
  kept.capacity = highest_rate(search, [&](double rate) { return kept.added(trial.run(rate, rate <= search.lowest)); });
  return pooled_runs_[name] = std::move(kept);
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
        key_(point.layout.key()),
        short_part_(part_of(point.layout, 1)),
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

  Trial trial_of(const ServingLayout& part, const Judging& judging) const {
    return {.simulator = simulator_,
            .layout = part,
            .engines = engines_,
            .judging = judging,
            .share = static_cast<double>(part.devices()) / static_cast<double>(point_.layout.devices())};
  }
  Trial trial_of(const ServingLayout& part, RunLength length) const {
    return trial_of(part, {.length = length, .stretches = 1, .surely = false});
  }

  CapacitySearch near(double start, double tolerance) const {
    return {.start = start,
            .lowest = most_ / 100,
            .highest = most_ * 2,
            .tolerance = tolerance,
            .first_step = 1 + 1.5 * tolerance};
  }

  void find_capacity() {
    const KeptRuns& quick =
        simulator_.short_runs(point_.layout, trial_of(short_part_, RunLength::brief), most_, usual_);
    short_capacity_ = quick.capacity;
    KeptRuns found = quick;
    if (takes_long_runs(effort_) || draws_curve(effort_)) found = by_long_runs();
    if (needs_promise(effort_)) found = by_pooled_runs(Effort::promised, found.capacity * usually_promised);
    point_.runs = std::move(found.runs);
    point_.short_capacity = short_capacity_;
    point_.usual_capacity = usual_capacity_;
    point_.capacity = {.value = found.capacity, .low = found.capacity, .high = found.capacity};
  }

  KeptRuns by_long_runs() {
    if (is_lengthy_as_usual()) {
      const KeptRuns& found = by_pooled_runs(Effort::full, short_capacity_);
      usual_capacity_ = found.capacity;
      return found;
    }
    find_usual_capacity();
    return by_pooled_runs(Effort::full, usual_capacity_);
  }

  // At rates as high as that, runs of the usual length have as many requests as lengthy ones.
  bool is_lengthy_as_usual() const {
    constexpr double well_below = 0.7;
    const Trial lengthy = trial_of(long_part_, RunLength::lengthy), usual = trial_of(long_part_, RunLength::usual);
    const double rate = short_capacity_ * well_below;
    return lengthy.requests_at(rate) == usual.requests_at(rate);
  }

  // As few of the runs as possible are lengthy: those of the usual length tell where to begin.
  void find_usual_capacity() {
    usual_capacity_ = simulator_
                          .pooled_runs("usual " + key_, trial_of(long_part_, RunLength::usual),
                                       near(short_capacity_ > 0 ? short_capacity_ : most_ * 0.1,
                                            settings_of(RunLength::usual).tolerance))
                          .capacity;
  }

  const KeptRuns& by_pooled_runs(Effort effort, double start) {
    return simulator_.pooled_runs(std::string(effort_name(effort)) + " " + key_,
                                  trial_of(long_part_, judging_of(effort)),
                                  near(start > 0 ? start : most_ * 0.1, pooled_tolerance));
  }

  // The run at capacity is the one that found it, so that everything shown of it is the same.
  void run_curve() {
    const std::vector<PlanRun> known = std::exchange(point_.runs, {});
    const Trial brief = trial_of(short_part_, RunLength::brief), usual = trial_of(long_part_, RunLength::usual),
                lengthy = trial_of(long_part_, RunLength::lengthy);
    // Far below the capacity hardly anybody waits: fewer requests tell as much.
    constexpr double far_below = 0.6;
    for (const double rate : simulator_.rates_of_curve(capacity())) {
      const auto same = std::find_if(known.begin(), known.end(), [&](const PlanRun& run) { return run.rate == rate; });
      const Trial& trial = !takes_long_runs(effort_) ? brief : rate < capacity() * far_below ? usual : lengthy;
      point_.runs.push_back(same != known.end() ? *same : trial.run_to_its_end(rate));
    }
  }

  void run_at_asked_rate() {
    const std::optional<double>& rate = question_.rate;
    if (rate && capacity() >= *rate && point_.at_rate(*rate) == nullptr) {
      point_.runs.push_back(trial_of(simulated_, judging_of(effort_)).run_to_its_end(*rate));
    }
    std::sort(point_.runs.begin(), point_.runs.end(),
              [](const PlanRun& a, const PlanRun& b) { return a.rate < b.rate; });
  }

  double capacity_with(const Trial& trial, StepBound bound, int64_t part, double start) const {
    return highest_rate(near(start, settings_of(trial.judging.length).tolerance),
                        [&](double rate) { return trial.try_stretch(rate, bound, part); });
  }

  void find_interval() {
    const std::string_view kind = is_promised() ? "long " : effort_ == Effort::quick ? "slow end " : "short ";
    const RelativeInterval& within = simulator_.interval(std::string(kind) + key_, [&] { return relative_interval(); });
    point_.capacity.low = capacity() * within.low;
    point_.capacity.high = capacity() * within.high;
  }
  bool is_promised() const { return effort_ == Effort::promised; }

  // Of what is promised by longer runs, and with other requests.
  RelativeInterval relative_interval() const {
    // One of many replicas tells as well what slower and faster steps change.
    constexpr int64_t few = 2;
    const RunLength length = is_promised() ? RunLength::usual : RunLength::brief;
    const bool is_alone = !is_promised() || simulated_.devices() > few * short_part_.devices();
    const Trial all = trial_of(simulated_, length), ends = is_alone ? trial_of(short_part_, length) : all;
    const double usual = !is_promised() ? short_capacity_
                         : is_alone     ? capacity_with(ends, ends.usual_bound(), 0, capacity())
                                        : usual_capacity_;
    RelativeInterval within;
    if (usual > 0 && !question_.pessimistic) {
      within.low = std::min(1.0, capacity_with(ends, StepBound::high, 0, usual * step_.value / step_.high) / usual);
    }
    if (effort_ == Effort::quick) return within;
    if (usual > 0) {
      const double faster = step_.low > 0 ? std::min(step_.value / step_.low, 2.0) : 1.15;
      within.high = std::max(1.0, capacity_with(ends, StepBound::low, 0, usual * faster) / usual);
    }
    // Which requests come, and where between two rates the capacity lies, are independent of the step times.
    const double spread = is_promised() ? spread_among_requests(all) : 0;
    const double tolerance = is_promised() ? pooled_tolerance : settings_of(length).tolerance;
    within.low = std::max(0.0, 1 - portable_hypot(1 - within.low, spread, tolerance));
    within.high = 1 + portable_hypot(within.high - 1, spread, tolerance);
    return within;
  }

  // 90% of the requests that might come, as far as a few stretches tell.
  double spread_among_requests(const Trial& trial) const {
    std::vector<double> capacities = {usual_capacity_};
    for (int64_t part = 1; part < compared_stretches; ++part) {
      capacities.push_back(capacity_with(trial, trial.usual_bound(), part, usual_capacity_));
    }
    const double mean = std::accumulate(capacities.begin(), capacities.end(), 0.0) / compared_stretches;
    if (mean <= 0) return 0;
    double squares = 0;
    for (const double one : capacities) squares += (one / mean - 1) * (one / mean - 1);
    return normal_half_width_90 * std::sqrt(squares / (compared_stretches - 1));
  }

  LayoutSimulator& simulator_;
  const ServingQuestion& question_;
  const LayoutEngines& engines_;
  double most_, usual_;  // requests/s by closed form: the bound, and what such layouts reach of it
  Estimate step_;
  Effort effort_;
  std::string key_;
  ServingLayout short_part_, long_part_, simulated_;
  PlanPoint point_;
  double short_capacity_ = 0, usual_capacity_ = 0;  // by runs of these lengths
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
