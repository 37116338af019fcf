#include "plan/serving/layout_simulation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
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

// What an evaluation goes on from.
constexpr std::optional<Effort> effort_before(Effort effort) {
  switch (effort) {
    case Effort::full:
      return Effort::quick;
    case Effort::promised:
      return Effort::full;
    case Effort::curve:
    case Effort::long_curve:
      return Effort::promised;
    case Effort::closed_form:
    case Effort::quick:
    case Effort::ranged:
      break;
  }
  return std::nullopt;
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

// Of runs whose late requests are so many times those that may be.
double reach_of_late(double used) {
  constexpr double usual_power = 16;  // of the rate
  return std::clamp(portable_pow(used, -1 / usual_power), 1 / farthest_guess, 1 - pooled_tolerance / 2);
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

// Runs of one kind: of a part of the layout, as long as others, judged alike.
struct LayoutSimulator::Trial {
  const LayoutSimulator* simulator;
  const ServingLayout* layout;  // the whole
  const ServingLayout* part;    // what is simulated
  const LayoutEngines* engines;
  Judging judging;
  StepBound bound;
  int64_t first_stretch = 0;  // of the traffic: 0 is the usual one
  bool metered = false;       // where it is known what boards draw

  const std::vector<LatencySlo>& slos() const { return simulator->question_->slos; }
  // Of the rate, what the simulated part gets.
  double share() const { return static_cast<double>(part->devices()) / static_cast<double>(layout->devices()); }
  int64_t requests_at(double rate) const { return simulator->requests_for(judging.length, rate * share()); }

  StretchTask task(double rate, int64_t stretch, bool to_its_end) const {
    return {.layout = *layout,
            .part = *part,
            .length = judging.length,
            .rate = rate,
            .bound = bound,
            .stretch = first_stretch + stretch,
            .judged_together = judging.stretches,
            .to_its_end = to_its_end,
            .metered = metered && stretch == 0 && draw_is_known()};
  }

  StretchOutcome run(const StretchTask& task) const {
    LateRequests late(slos(), requests_at(task.rate) * task.judged_together);
    StretchOutcome outcome{.run = {}, .latencies = LatencyLog(requests_at(task.rate))};
    const std::optional<Stretch> one = run_stretch({.rate = task.rate,
                                                    .bound = task.bound,
                                                    .part = task.stretch,
                                                    .metered = task.metered,
                                                    .is_lost = task.to_its_end ? nullptr : &late,
                                                    .log = &outcome.latencies});
    if (one) {
      outcome.run = one->run;
      outcome.keeps_up = one->keeps_up;
    } else {
      outcome.ended_share = late.ended_share();
    }
    return outcome;
  }

  // All of it here, of one stretch or of several.
  TriedRun tried(double rate, bool to_its_end = false) const;

  TriedRun judged(const std::vector<StretchOutcome>& outcomes, const PooledLatencies& pool) const {
    const PlanRun all = outcomes.size() == 1 && !judging.surely ? *outcomes.front().run : pooled(outcomes, pool);
    TriedRun tried{.run = all, .reach = reach_of(all, slos())};
    if (!judging.surely) return tried;
    tried.used = all.attained ? std::min(used_of(pool), 1.0) : std::max(used_of(pool), least_of_lost);
    return tried;
  }

  // The runs before, and one that was ended when so many of its requests were late as may be of all stretches, after
  // this share of all their requests.
  TriedRun lost_after(const PooledLatencies& before, double ended_share) const {
    if (!judging.surely) return {.run = {}, .reach = reach_of_lost(ended_share)};
    const double share_before = static_cast<double>(before.runs()) / static_cast<double>(judging.stretches);
    const double late =
        1 + share_before * most_used([&](std::span<const LatencySlo> limits) { return before.late_share(limits); });
    return {.run = {}, .reach = reach_of_late(late / (share_before + ended_share))};
  }

  // Whatever requests the stretches have that are left.
  std::optional<TriedRun> lost_for_sure(const PooledLatencies& pool) const {
    if (!judging.surely || simulator->shortcuts_ != Shortcuts::taken) return std::nullopt;
    const double least = most_used([&](std::span<const LatencySlo> limits) {
      return pool.late_share_at_most_of(static_cast<size_t>(judging.stretches), limits);
    });
    if (least <= least_of_lost) return std::nullopt;
    // The others are likely to be better than those that were enough.
    return TriedRun{.run = {}, .reach = reach_of_late(std::sqrt(least * std::max(least, used_of(pool))))};
  }

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

  // Of the late requests that the limits leave, as surely as the runs so far tell; of the limit that leaves least.
  double used_of(const PooledLatencies& pool) const {
    return most_used([&](std::span<const LatencySlo> limits) { return pool.late_share_at_most(limits); });
  }
  // Where no request may be late, one that is uses many times what is left.
  static double used_share(double late, double percent) {
    constexpr double many = 1e3, rounding = 1e-9;
    const double may_be_late = 1 - percent / 100;
    if (may_be_late > 0) return late / may_be_late;
    return late > rounding ? many : 0;
  }
  double most_used(const std::function<double(std::span<const LatencySlo>)>& late_share) const {
    if (const std::optional<double>& joint = simulator->question_->joint_percent) {
      return used_share(late_share(slos()), *joint);
    }
    double used = 0;
    for (const LatencySlo& slo : slos()) {
      if (slo.metric == SloMetric::itl) continue;
      used = std::max(used, used_share(late_share({&slo, 1}), slo.percentile));
    }
    return used;
  }

  // Means of the runs, with percentiles of all their requests.
  PlanRun pooled(const std::vector<StretchOutcome>& runs, const PooledLatencies& pool) const {
    PlanRun all = *runs.front().run;
    const auto mean_of = [&](double PlanRun::*member) {
      double sum = 0;
      for (const StretchOutcome& one : runs) sum += (*one.run).*member;
      return sum / static_cast<double>(runs.size());
    };
    for (double PlanRun::*member :
         {&PlanRun::output_tokens_per_s, &PlanRun::tokens_per_s_of_user, &PlanRun::goodput, &PlanRun::failed_share}) {
      all.*member = mean_of(member);
    }
    all.requests = 0;
    for (const StretchOutcome& one : runs) all.requests += one.run->requests;
    for (size_t i = 0; i < slos().size(); ++i) {
      if (slos()[i].metric != SloMetric::itl) {
        all.achieved_ms[i] = pool.percentile_ms(slos()[i]);
        continue;
      }
      // Gaps between tokens are too many to be kept.
      all.achieved_ms[i] = 0;
      for (const StretchOutcome& one : runs)
        all.achieved_ms[i] += one.run->achieved_ms[i] / static_cast<double>(runs.size());
    }
    all.attained = keeps_limits(all, pool) &&
                   (limits_any_waiting() ||
                    std::all_of(runs.begin(), runs.end(), [](const StretchOutcome& one) { return one.keeps_up; }));
    return all;
  }

  bool limits_any_waiting() const { return std::any_of(slos().begin(), slos().end(), limits_waiting); }

  bool keeps_limits(const PlanRun& all, const PooledLatencies& pool) const {
    const auto late = [&](std::span<const LatencySlo> limits) {
      return judging.surely ? pool.late_share_at_most(limits) : pool.late_share(limits);
    };
    if (const std::optional<double>& joint = simulator->question_->joint_percent) {
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
    const ServingQuestion& question = *simulator->question_;
    const double own_rate = of.rate * share();
    const int64_t requests = requests_at(of.rate);
    ServingRunRequest request = simulator->run_request(*part, *engines, own_rate, requests, of.part);
    request.config.bound = of.bound;
    StepLog steps;
    if (of.metered) request.observers.push_back(&steps);
    if (of.log != nullptr) request.observers.push_back(of.log);
    WantedCheck wanted(simulator->check_wanted_);
    if (simulator->check_wanted_) request.observers.push_back(&wanted);
    SteadyOutput steady(static_cast<double>(requests) / own_rate);
    request.observers.push_back(&steady);
    const bool may_end = of.is_lost != nullptr && simulator->shortcuts_ == Shortcuts::taken;
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
                   .output_tokens_per_s = metrics.output_throughput / share(),
                   .tokens_per_s_of_user = metrics.tpot.mean_ms > 0 ? 1e3 / metrics.tpot.mean_ms : 0,
                   .goodput = metrics.goodput.value_or(metrics.request_throughput) / share(),
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
      result.output_tokens_per_s = std::max(result.output_tokens_per_s, steady.tokens_per_s() / share());
    }
    // Nobody is shown the energy of a run that breaks a limit, except those of curves.
    if (of.metered && (result.attained || of.is_lost == nullptr || judging.stretches > 1)) {
      result.joules_per_token = joules_per_token(steps, metrics, lasts_s);
    }
    // What host memory below the cache could save.
    if (judging.length == RunLength::brief && part->pool.host_gib == 0 && tries_host_memory(question.choices)) {
      const auto computed = static_cast<double>(metrics.input_tokens - metrics.cached_tokens);
      const int64_t first = simulator->first_request(requests, of.part);
      const auto fresh = static_cast<double>(simulator->traffic_->fresh_tokens(requests, first));
      result.computed_again = std::max(1.0, computed / fresh);
    }
    return Stretch{.run = std::move(result), .keeps_up = keeps};
  }

  // Prompts first, as replicas are.
  std::vector<std::pair<const ReadyEngine*, int64_t>> pools() const {
    std::vector<std::pair<const ReadyEngine*, int64_t>> all = {{engines->pool, part->pool.replicas}};
    if (part->decode) all.emplace_back(engines->decode, part->decode->replicas);
    return all;
  }
  bool draw_is_known() const {
    return engines->pool->draw() != nullptr && (engines->decode == nullptr || engines->decode->draw() != nullptr);
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

// One rate, stretch by stretch, until it is decided.
class LayoutSimulator::RateTrial {
 public:
  RateTrial(const Trial& trial, double rate, bool to_its_end) : trial_(trial), rate_(rate), to_its_end_(to_its_end) {}

  // What to run next. Of many stretches, half: the others are left out where these decide.
  std::vector<StretchTask> next() const {
    const int64_t stretches = trial_.judging.stretches;
    const auto done = static_cast<int64_t>(outcomes_.size());
    std::vector<StretchTask> tasks;
    for (int64_t i = done; i < std::min(stretches, done + (stretches + 1) / 2); ++i) {
      tasks.push_back(trial_.task(rate_, i, to_its_end_));
    }
    return tasks;
  }
  // In the order of next(); what comes after the decision changes nothing.
  void put(StretchOutcome outcome) {
    if (decision_) return;
    if (!outcome.run) {
      decision_ = trial_.lost_after(pool_, outcome.ended_share);
      return;
    }
    pool_.add(outcome.latencies);
    outcomes_.push_back(std::move(outcome));
    if (static_cast<int64_t>(outcomes_.size()) == trial_.judging.stretches) {
      decision_ = trial_.judged(outcomes_, pool_);
    } else if (!to_its_end_) {
      decision_ = trial_.lost_for_sure(pool_);
    }
  }
  void run_here() {
    for (const StretchTask& task : next()) {
      if (!decision_) put(trial_.run(task));
    }
  }
  const std::optional<TriedRun>& decision() const { return decision_; }

 private:
  Trial trial_;
  double rate_;
  bool to_its_end_;
  PooledLatencies pool_;
  std::vector<StretchOutcome> outcomes_;
  std::optional<TriedRun> decision_;
};

LayoutSimulator::TriedRun LayoutSimulator::Trial::tried(double rate, bool to_its_end) const {
  RateTrial trial(*this, rate, to_its_end);
  while (!trial.decision()) trial.run_here();
  return *trial.decision();
}

StretchOutcome LayoutSimulator::run_stretch(const StretchTask& task) {
  const LayoutEngines engines = shelf_->engines(task.layout);
  return Trial{.simulator = this,
               .layout = &task.layout,
               .part = &task.part,
               .engines = &engines,
               .judging = {.length = task.length, .stretches = task.judged_together, .surely = false},
               .bound = task.bound}
      .run(task);
}

std::string StretchTask::key() const {
  return fmt::format("stretch {} of {} length {} rate {} bound {} judged {} {}{} {} of {}", stretch, part.key(),
                     static_cast<int>(length), rate, static_cast<int>(bound), judged_together,
                     to_its_end ? "to its end" : "", metered ? " metered" : "", part.devices(), layout.key());
}

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
  // The slowest tells how near the layout comes to limits that it never keeps.
  kept.capacity =
      highest_rate(search, [&](double rate) { return kept.added(trial.tried(rate, rate <= search.lowest)); });
  return short_runs_[key] = std::move(kept);
}

const LayoutSimulator::KeptRuns& LayoutSimulator::pooled_runs(const std::string& name, const Trial& trial,
                                                              const CapacitySearch& search) {
  constexpr size_t most_kept = 4096;
  if (const auto found = pooled_runs_.find(name); found != pooled_runs_.end()) return found->second;
  if (pooled_runs_.size() >= most_kept) pooled_runs_.clear();
  KeptRuns kept;
  kept.capacity =
      highest_rate(search, [&](double rate) { return kept.added(trial.tried(rate, rate <= search.lowest)); });
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
             const Estimate& step, const EvaluationHelp& help, PlanPoint point)
      : simulator_(simulator),
        question_(*simulator.question_),
        engines_(engines),
        most_(judgement.most_requests_per_s),
        usual_(most_ * usually_reached(point.layout, judgement.shape).usual),
        step_(step),
        help_(help),
        effort_(point.effort),
        key_(point.layout.key()),
        short_part_(part_of(point.layout, 1)),
        long_part_(simulator.long_part(point.layout, most_)),
        simulated_(takes_long_runs(effort_) ? long_part_ : short_part_),
        point_(std::move(point)) {}

  PlanPoint evaluated() {
    if (draws_curve(effort_)) {
      run_curve();
    } else if (is_promised()) {
      find_promise();
      run_at_asked_rate();
    } else {
      find_capacity();
      run_at_asked_rate();
      const bool by_slow_end = question_.is_judged_by_slow_end(point_.layout) && !question_.pessimistic;
      const bool wants_interval = effort_ != Effort::quick || by_slow_end;
      if (wants_interval && capacity() > 0 && short_capacity_ > 0) find_interval();
    }
    point_.short_capacity = short_capacity_;
    point_.usual_capacity = usual_capacity_;
    return std::move(point_);
  }

 private:
  // A search for a capacity, rate by rate.
  struct RatesOfTrial {
    RatesOfTrial(const Trial& of, const CapacitySearch& search)
        : trial(of), rates(search), lowest(search.lowest), now(of, rates.next(), is_lowest()) {}

    void go_on() {
      if (is_found() || !now.decision()) return;
      kept.capacity = rates.after(kept.added(*now.decision())).value_or(-1);
      if (is_found()) return;
      now = RateTrial(trial, rates.next(), is_lowest());
    }
    bool is_found() const { return kept.capacity >= 0; }
    // That one tells how near the layout comes to limits that it never keeps.
    bool is_lowest() const { return rates.next() <= lowest; }

    Trial trial;
    RateSearch rates;
    double lowest;
    RateTrial now;
    KeptRuns kept{.capacity = -1};
  };

  double capacity() const { return point_.capacity.value; }
  bool is_promised() const { return effort_ == Effort::promised; }

  Trial trial_of(const ServingLayout& part, const Judging& judging) const {
    return {.simulator = &simulator_,
            .layout = &point_.layout,
            .part = &part,
            .engines = &engines_,
            .judging = judging,
            .bound = question_.pessimistic ? StepBound::high : StepBound::value,
            .metered = true};
  }
  Trial trial_of(const ServingLayout& part, RunLength length) const {
    return trial_of(part, {.length = length, .stretches = 1, .surely = false});
  }
  // Of which only the capacity is asked.
  Trial unmetered(const ServingLayout& part, RunLength length) const {
    Trial trial = trial_of(part, length);
    trial.metered = false;
    return trial;
  }

  CapacitySearch near(double start, double tolerance) const {
    return {.start = start > 0 ? start : most_ * 0.1,
            .lowest = most_ / 100,
            .highest = most_ * 2,
            .tolerance = tolerance,
            .first_step = 1 + 1.5 * tolerance};
  }

  // Rates of several trials, by whoever helps: each of their stretches may be run by another.
  void run_together(std::vector<RateTrial*> trials) const {
    std::erase_if(trials, [](const RateTrial* one) { return one->decision().has_value(); });
    if (!help_.run_stretches) {
      for (RateTrial* one : trials) one->run_here();
      return;
    }
    std::vector<StretchTask> tasks;
    std::vector<RateTrial*> owners;
    for (RateTrial* one : trials) {
      for (StretchTask& task : one->next()) {
        tasks.push_back(std::move(task));
        owners.push_back(one);
      }
    }
    std::vector<StretchOutcome> outcomes = help_.run_stretches(tasks);
    for (size_t i = 0; i < tasks.size(); ++i) owners[i]->put(std::move(outcomes[i]));
  }
  void search_together(std::vector<RatesOfTrial>& searches) const {
    while (true) {
      std::vector<RateTrial*> open;
      for (RatesOfTrial& one : searches) {
        if (!one.is_found()) open.push_back(&one.now);
      }
      if (open.empty()) return;
      run_together(open);
      for (RatesOfTrial& one : searches) one.go_on();
    }
  }
  void run_to_their_ends(std::vector<RateTrial>& trials) const {
    std::vector<RateTrial*> all;
    for (RateTrial& one : trials) all.push_back(&one);
    while (std::any_of(trials.begin(), trials.end(), [](const RateTrial& one) { return !one.decision(); })) {
      run_together(all);
    }
  }

  void find_capacity() {
    if (!takes_long_runs(effort_)) {
      set_capacity(quick_runs());
      short_capacity_ = capacity();
      return;
    }
    short_capacity_ = help_.known != nullptr ? help_.known->short_capacity : quick_runs().capacity;
    set_capacity(by_long_runs());
  }

  void set_capacity(KeptRuns found) {
    point_.runs = std::move(found.runs);
    point_.capacity = {.value = found.capacity, .low = found.capacity, .high = found.capacity};
  }

  const KeptRuns& quick_runs() const {
    return simulator_.short_runs(point_.layout, trial_of(short_part_, RunLength::brief), most_, usual_);
  }

  KeptRuns by_long_runs() {
    if (!is_lengthy_as_usual()) {
      find_usual_capacity();
      return by_lengthy_runs(usual_capacity_);
    }
    const KeptRuns& found = by_lengthy_runs(short_capacity_);
    usual_capacity_ = found.capacity;
    return found;
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
                                       near(short_capacity_, settings_of(RunLength::usual).tolerance))
                          .capacity;
  }

  const KeptRuns& by_lengthy_runs(double start) const {
    return simulator_.pooled_runs("full " + key_, trial_of(long_part_, judging_of(Effort::full)),
                                  near(start, pooled_tolerance));
  }

  // The rate that is promised, and what changes it, at the same time.
  void find_promise() {
    ensure(help_.known != nullptr, "a promise begins at an estimate");
    short_capacity_ = help_.known->short_capacity;
    usual_capacity_ = help_.known->usual_capacity;
    std::vector<RatesOfTrial> searches;
    searches.emplace_back(trial_of(long_part_, judging_of(effort_)),
                          near(help_.known->capacity.value * usually_promised, pooled_tolerance));
    const bool has_interval = usual_capacity_ > 0 && short_capacity_ > 0;
    if (has_interval) add_changes(searches);
    search_together(searches);
    set_capacity(searches.front().kept);
    if (!has_interval || capacity() <= 0) return;
    const RelativeInterval within = interval_of(searches);
    point_.capacity.low = capacity() * within.low;
    point_.capacity.high = capacity() * within.high;
  }

  // What slower steps, faster steps and other stretches change, each by runs of the usual length.
  enum Change : size_t {
    promise,
    slow_steps,
    fast_steps,
    other_stretches,
    usual_steps = other_stretches + compared_stretches - 1  // of the part with other steps, where it is another one
  };
  void add_changes(std::vector<RatesOfTrial>& searches) const {
    const auto add = [&](const ServingLayout& part, std::optional<StepBound> bound, int64_t stretch, double start) {
      Trial trial = unmetered(part, RunLength::usual);
      if (bound) trial.bound = *bound;
      trial.first_stretch = stretch;
      searches.emplace_back(trial, near(start, settings_of(RunLength::usual).tolerance));
    };
    add(part_with_other_steps(), StepBound::high, 0, usual_capacity_ * step_.value / step_.high);
    add(part_with_other_steps(), StepBound::low, 0, usual_capacity_ * gain_of_fast_steps());
    for (int64_t stretch = 1; stretch < compared_stretches; ++stretch) {
      add(long_part_, std::nullopt, stretch, usual_capacity_);
    }
    if (part_with_other_steps() != long_part_) add(part_with_other_steps(), std::nullopt, 0, usual_capacity_);
  }
  // One of many replicas tells as well what slower and faster steps change.
  const ServingLayout& part_with_other_steps() const {
    constexpr int64_t few = 2;
    return long_part_.devices() > few * short_part_.devices() ? short_part_ : long_part_;
  }
  double gain_of_fast_steps() const { return step_.low > 0 ? std::min(step_.value / step_.low, 2.0) : 1.15; }

  RelativeInterval interval_of(const std::vector<RatesOfTrial>& searches) const {
    const auto found = [&](size_t change) { return searches[change].kept.capacity; };
    const double usual = searches.size() > usual_steps ? found(usual_steps) : usual_capacity_;
    RelativeInterval within;
    if (usual > 0) {
      if (!question_.pessimistic) within.low = std::min(1.0, found(slow_steps) / usual);
      within.high = std::max(1.0, found(fast_steps) / usual);
    }
    std::vector<double> capacities = {usual_capacity_};
    for (size_t i = other_stretches; i < usual_steps; ++i) capacities.push_back(found(i));
    // The changed runs were searched that finely, the promise itself more finely.
    return widened(within, spread_among(capacities), settings_of(RunLength::usual).tolerance);
  }

  // Which requests come, and where between two rates the capacity lies, are independent of the step times.
  static RelativeInterval widened(const RelativeInterval& within, double spread, double tolerance) {
    return {.low = std::max(0.0, 1 - portable_hypot(1 - within.low, spread, tolerance)),
            .high = 1 + portable_hypot(within.high - 1, spread, tolerance)};
  }

  // 90% of the requests that might come, as far as a few stretches tell.
  static double spread_among(const std::vector<double>& capacities) {
    const auto number = static_cast<double>(capacities.size());
    const double mean = std::accumulate(capacities.begin(), capacities.end(), 0.0) / number;
    if (mean <= 0) return 0;
    double squares = 0;
    for (const double one : capacities) squares += (one / mean - 1) * (one / mean - 1);
    return student_95(capacities.size()) * std::sqrt(squares / (number - 1));
  }

  // Around what is promised. The run at capacity is the one that found it, so that everything shown of it is the same.
  void run_curve() {
    ensure(help_.known != nullptr, "a curve is drawn around a capacity");
    short_capacity_ = help_.known->short_capacity;
    usual_capacity_ = help_.known->usual_capacity;
    point_.capacity = {
        .value = help_.known->capacity.value, .low = help_.known->capacity.value, .high = help_.known->capacity.value};
    const PlanRun* known = help_.known->at_rate(capacity());
    // Below the capacity few requests wait: fewer of them tell as much.
    constexpr double below = 0.95;
    const Trial brief = trial_of(short_part_, RunLength::brief), usual = trial_of(long_part_, RunLength::usual),
                lengthy = trial_of(long_part_, RunLength::lengthy);
    std::vector<RateTrial> trials;
    for (const double rate : simulator_.rates_of_curve(capacity())) {
      const Trial& trial = !takes_long_runs(effort_) ? brief : rate < capacity() * below ? usual : lengthy;
      if (rate != capacity() || known == nullptr) trials.emplace_back(trial, rate, true);
    }
    run_to_their_ends(trials);
    for (const RateTrial& one : trials) point_.runs.push_back(*one.decision()->run);
    if (known != nullptr) point_.runs.push_back(*known);
    sort_runs();
  }

  void run_at_asked_rate() {
    const std::optional<double>& rate = question_.rate;
    if (rate && capacity() >= *rate && point_.at_rate(*rate) == nullptr) {
      std::vector<RateTrial> trials = {RateTrial(trial_of(simulated_, judging_of(effort_)), *rate, true)};
      run_to_their_ends(trials);
      point_.runs.push_back(*trials.front().decision()->run);
    }
    sort_runs();
  }
  void sort_runs() {
    std::sort(point_.runs.begin(), point_.runs.end(),
              [](const PlanRun& a, const PlanRun& b) { return a.rate < b.rate; });
  }

  void find_interval() {
    const std::string_view kind = effort_ == Effort::quick ? "slow end " : "short ";
    const RelativeInterval& within = simulator_.interval(std::string(kind) + key_, [&] { return relative_interval(); });
    point_.capacity.low = capacity() * within.low;
    point_.capacity.high = capacity() * within.high;
  }

  // By short runs.
  RelativeInterval relative_interval() const {
    const double tolerance = settings_of(RunLength::brief).tolerance;
    const auto capacity_with = [&](StepBound bound, double start) {
      Trial trial = unmetered(short_part_, RunLength::brief);
      trial.bound = bound;
      KeptRuns kept;
      return highest_rate(near(start, tolerance), [&](double rate) { return kept.added(trial.tried(rate)); });
    };
    RelativeInterval within;
    const double usual = short_capacity_;
    if (!question_.pessimistic) {
      within.low = std::min(1.0, capacity_with(StepBound::high, usual * step_.value / step_.high) / usual);
    }
    if (effort_ == Effort::quick) return within;
    within.high = std::max(1.0, capacity_with(StepBound::low, usual * gain_of_fast_steps()) / usual);
    return widened(within, 0, tolerance);
  }

  LayoutSimulator& simulator_;
  const ServingQuestion& question_;
  const LayoutEngines& engines_;
  double most_, usual_;  // requests/s by closed form: the bound, and what such layouts reach of it
  Estimate step_;
  const EvaluationHelp& help_;
  Effort effort_;
  std::string key_;
  ServingLayout short_part_, long_part_, simulated_;
  PlanPoint point_;
  double short_capacity_ = 0, usual_capacity_ = 0;  // by runs of these lengths
};

PlanPoint LayoutSimulator::evaluate(const ServingLayout& layout, Effort effort, const EvaluationHelp& help) {
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
  const auto with = [&](const EvaluationHelp& by) {
    return Evaluation(*this, engines, judgement, step, by, point).evaluated();
  };
  const std::optional<Effort> before = effort_before(effort);
  if (!before) return with({.known = nullptr, .run_stretches = help.run_stretches});
  const std::string key = layout.key();
  if (effort == Effort::promised && promised_.contains(key)) return promised_.at(key);
  PlanPoint known;
  if (help.known != nullptr && help.known->effort == *before) {
    known = *help.known;
  } else {
    known = evaluate(layout, *before, help);
  }
  PlanPoint found = with({.known = &known, .run_stretches = help.run_stretches});
  constexpr size_t most_kept = 4096;
  if (promised_.size() >= most_kept) promised_.clear();
  if (effort == Effort::promised) promised_.emplace(key, found);
  return found;
}

}  // namespace foretoken
