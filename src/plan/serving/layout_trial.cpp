#include "plan/serving/layout_trial.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "base/error.h"
#include "base/portable_math.h"
#include "plan/serving/wanted_check.h"
#include "serving/simulation/acceptance_ends.h"

namespace foretoken {
namespace {

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
  return std::clamp(portable_pow(used, -1 / usual_power_of_late), 1 / farthest_guess, 1 - pooled_tolerance / 2);
}

}  // namespace

ServingLayout part_of(const ServingLayout& layout, int64_t most_replicas) {
  ServingLayout part = layout;
  if (!layout.decode) {
    part.pool.replicas = std::min(layout.pool.replicas, most_replicas);
  } else {
    // Requests that several engines share wait less than those of one: as many as there may be of each.
    const int64_t equal = std::gcd(layout.pool.replicas, layout.decode->replicas);
    const int64_t copies = std::min(equal, most_replicas);
    part.pool.replicas = part.pool.replicas / equal * copies;
    part.decode->replicas = part.decode->replicas / equal * copies;
  }
  return part;
}

// Requests that all limits are about decode for as long as those allow.
int64_t LayoutSimulator::requests_for(Effort effort, double load) const {
  return requests_for(judging_of(effort).length, load);
}

int64_t LayoutSimulator::requests_for(RunLength length, double load) const {
  constexpr int64_t most_requests = 200'000;  // only separate pools of very many engines come near
  const LengthSettings settings = settings_of(length);
  if (question_->in_flight) {
    // As many for each one in flight as benchmarks usually send, and never fewer than what is promised is judged by:
    // all are sent at once at first, and would decide the percentiles of shorter runs. Only one load is tried.
    constexpr int64_t for_each = 10;
    const int64_t least = settings_of(RunLength::lengthy).least_requests;
    return std::clamp(for_each * whole_in_flight(load), least, most_requests);
  }
  constexpr double usual_tpot_s = 0.05;
  double tpot_s = usual_tpot_s;
  for (const LatencySlo& slo : question_->slos) {
    if (slo.metric == SloMetric::tpot) tpot_s = slo.limit_ms / 1e3;
  }
  // Of a conversation, all requests and the pauses between them: it takes that long until as many go on as will.
  const double answers_s = traffic_->requests_each() * traffic_->lengths().mean_output * tpot_s;
  const double span_s = settings.service_times * (answers_s + traffic_->pauses_s());
  const int64_t requests = std::clamp(static_cast<int64_t>(std::ceil(std::min(load * span_s, 1e12))),
                                      settings.least_requests, most_requests);
  return traffic_->whole_conversations(requests);
}

ServingLayout LayoutSimulator::long_part(const ServingLayout& layout, double rate) const {
  // At most 8, and at least 2, until there are requests enough.
  constexpr double enough_requests = 12'000;
  const int64_t equal = layout.decode ? std::gcd(layout.pool.replicas, layout.decode->replicas) : layout.pool.replicas;
  const double rate_of_replica = rate / static_cast<double>(equal);
  const auto requests = static_cast<double>(requests_for(RunLength::usual, rate_of_replica));
  return part_of(layout, static_cast<int64_t>(std::clamp(enough_requests / requests, 2.0, 8.0)));
}

StretchTask LayoutSimulator::Trial::task(double rate, int64_t stretch, bool to_its_end) const {
  return {.layout = *layout,
          .part = *part,
          .length = judging.length,
          .rate = rate,
          .bound = bound,
          .stretch = first_stretch + stretch,
          .judged_together = judging.stretches,
          .to_its_end = to_its_end,
          .metered = metered && stretch == 0 && draw_is_known(),
          .acceptance_end = acceptance_end};
}

StretchOutcome LayoutSimulator::Trial::run(const StretchTask& task) const {
  LateRequests late(slos(), requests_at(task.rate) * task.judged_together);
  StretchOutcome outcome{.run = {}, .latencies = LatencyLog(requests_at(task.rate))};
  const std::optional<Stretch> one = run_stretch({.rate = task.rate,
                                                  .bound = task.bound,
                                                  .part = task.stretch,
                                                  .metered = task.metered,
                                                  .acceptance_end = task.acceptance_end,
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

LayoutSimulator::TriedRun LayoutSimulator::Trial::judged(const std::vector<StretchOutcome>& outcomes,
                                                         const PooledLatencies& pool) const {
  const PlanRun all = outcomes.size() == 1 && !judging.surely ? *outcomes.front().run : pooled(outcomes, pool);
  TriedRun tried{.run = all, .reach = reach_of(all, slos())};
  if (!judging.surely) return tried;
  tried.used = all.attained ? std::min(used_of(pool), 1.0) : std::max(used_of(pool), least_of_lost);
  return tried;
}

LayoutSimulator::TriedRun LayoutSimulator::Trial::lost_after(const PooledLatencies& before, double ended_share) const {
  if (!judging.surely) return {.run = {}, .reach = reach_of_lost(ended_share)};
  const double share_before = static_cast<double>(before.runs()) / static_cast<double>(judging.stretches);
  const double late =
      1 + share_before * most_used([&](std::span<const LatencySlo> limits) { return before.late_share(limits); });
  return {.run = {}, .reach = reach_of_late(late / (share_before + ended_share))};
}

std::optional<LayoutSimulator::TriedRun> LayoutSimulator::Trial::lost_for_sure(const PooledLatencies& pool) const {
  if (!judging.surely || simulator->shortcuts_ != Shortcuts::taken) return std::nullopt;
  const double least = most_used([&](std::span<const LatencySlo> limits) {
    return pool.late_share_at_most_of(static_cast<size_t>(judging.stretches), limits);
  });
  if (least <= least_of_lost) return std::nullopt;
  // The others are likely to be better than those that were enough.
  return TriedRun{.run = {}, .reach = reach_of_late(std::sqrt(least * std::max(least, used_of(pool))))};
}

double LayoutSimulator::Trial::used_of(const PooledLatencies& pool) const {
  return most_used([&](std::span<const LatencySlo> limits) { return pool.late_share_at_most(limits); });
}

double LayoutSimulator::Trial::used_share(double late, double percent) {
  constexpr double many = 1e3, rounding = 1e-9;
  const double may_be_late = 1 - percent / 100;
  if (may_be_late > 0) return late / may_be_late;
  return late > rounding ? many : 0;
}

double LayoutSimulator::Trial::most_used(const std::function<double(std::span<const LatencySlo>)>& late_share) const {
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

PlanRun LayoutSimulator::Trial::pooled(const std::vector<StretchOutcome>& runs, const PooledLatencies& pool) const {
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
  if (all.in_flight > 0) all.rate = mean_of(&PlanRun::rate);
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

bool LayoutSimulator::Trial::limits_any_waiting() const {
  return std::any_of(slos().begin(), slos().end(), limits_waiting);
}

bool LayoutSimulator::Trial::keeps_limits(const PlanRun& all, const PooledLatencies& pool) const {
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

std::optional<LayoutSimulator::Trial::Stretch> LayoutSimulator::Trial::run_stretch(const StretchOfRun& of) const {
  const ServingQuestion& question = *simulator->question_;
  const bool is_closed = question.in_flight.has_value();
  const double own_load = of.rate * share();
  const int64_t requests = requests_at(of.rate);
  ServingRunRequest request = simulator->run_request(*part, *engines, own_load, requests, of.part);
  request.config.bound = of.bound;
  if (of.acceptance_end) {
    if (auto other = at_acceptance_end(request.config, *of.acceptance_end)) request.config = std::move(*other);
  }
  request.config.token_gaps = std::any_of(question.slos.begin(), question.slos.end(),
                                          [](const LatencySlo& slo) { return slo.metric == SloMetric::itl; });
  StepLog steps;
  if (of.metered) request.observers.push_back(&steps);
  if (of.log != nullptr) request.observers.push_back(of.log);
  WantedCheck wanted(simulator->check_wanted_);
  if (simulator->check_wanted_) request.observers.push_back(&wanted);
  SteadyOutput steady(static_cast<double>(requests) / own_load);
  request.observers.push_back(&steady);
  const bool may_end = of.is_lost != nullptr && simulator->shortcuts_ == Shortcuts::taken;
  if (may_end) request.observers.push_back(of.is_lost);
  ServingMetrics metrics;
  try {
    metrics = run_metrics(request);
  } catch (const LimitIsLost&) {
    return std::nullopt;
  }
  const auto all = static_cast<double>(metrics.completed + metrics.rejected);
  // Of the part that was simulated; of a closed loop, by those in flight, whose share was rounded up.
  const double times = is_closed ? of.rate / static_cast<double>(whole_in_flight(own_load)) : 1 / share();
  PlanRun result{.rate = is_closed ? metrics.request_throughput * times : of.rate,
                 .in_flight = is_closed ? whole_in_flight(of.rate) : 0,
                 .requests = metrics.completed + metrics.rejected,
                 .attained = true,
                 .achieved_ms = {},
                 .output_tokens_per_s = metrics.output_throughput * times,
                 .tokens_per_s_of_user = metrics.tpot.mean_ms > 0 ? 1e3 / metrics.tpot.mean_ms : 0,
                 .goodput = metrics.goodput.value_or(metrics.request_throughput) * times,
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
  // In a closed loop nobody waits for more than those in flight.
  const bool keeps = is_closed || keeps_up(metrics, request.percentiles, all / own_load);
  if (!limits_any_waiting()) result.attained = result.attained && keeps;
  // One that keeps up does so for ever: the end of the run, when requests have stopped coming, says nothing.
  const bool goes_on = !is_closed && (result.attained || keeps);
  const double lasts_s = goes_on ? all / own_load : metrics.duration_s;
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
  if (judging.length == RunLength::brief && part->pool.host_gib == 0 && question.choices.tries_host_memory()) {
    const auto computed = static_cast<double>(metrics.input_tokens - metrics.cached_tokens);
    const double fresh = simulator->traffic_->fresh_tokens_of_part(requests, of.part);
    result.computed_again = std::max(1.0, computed / fresh);
  }
  return Stretch{.run = std::move(result), .keeps_up = keeps};
}

std::vector<std::pair<const ReadyEngine*, int64_t>> LayoutSimulator::Trial::pools() const {
  std::vector<std::pair<const ReadyEngine*, int64_t>> all = {{engines->pool, part->pool.replicas}};
  if (part->decode) all.emplace_back(engines->decode, part->decode->replicas);
  return all;
}

bool LayoutSimulator::Trial::draw_is_known() const {
  return engines->pool->draw() != nullptr && (engines->decode == nullptr || engines->decode->draw() != nullptr);
}

std::vector<StepWatts> LayoutSimulator::Trial::replica_watts() const {
  std::vector<StepWatts> watts;
  for (const auto& [engine, replicas] : pools()) {
    watts.insert(watts.end(), static_cast<size_t>(replicas),
                 watts_of_replica(*engine->draw(), engine->group.config.options.lock_step_ranks));
  }
  return watts;
}

Headline LayoutSimulator::Trial::joules_per_token(const StepLog& steps, const ServingMetrics& metrics,
                                                  double lasts_s) const {
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
  return fmt::format("stretch {} of {} length {} rate {} bound {} judged {} {}{} {} of {}{}", stretch, part.key(),
                     static_cast<int>(length), rate, static_cast<int>(bound), judged_together,
                     to_its_end ? "to its end" : "", metered ? " metered" : "", part.devices(), layout.key(),
                     acceptance_end ? fmt::format(" acceptance {}", *acceptance_end) : "");
}

}  // namespace foretoken
