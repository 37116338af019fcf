// Runs that judge one rate of one layout. Of LayoutSimulator alone: layout_evaluation.cpp searches for rates with them.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "plan/serving/capacity_search.h"
#include "plan/serving/layout_simulation.h"
#include "plan/serving/pooled_latencies.h"
#include "plan/serving/trial_observers.h"
#include "serving/energy/energy_account.h"

namespace foretoken {

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
      return {.length = RunLength::lengthy, .stretches = 6, .surely = true};
    case Effort::closed_form:
    case Effort::quick:
    case Effort::ranged:
    case Effort::curve:
    case Effort::long_curve:
      break;
  }
  return {.length = RunLength::brief, .stretches = 1, .surely = false};
}

// Capacity by several stretches.
constexpr double pooled_tolerance = 0.02;

// Equal engines need not all be simulated.
ServingLayout part_of(const ServingLayout& layout, int64_t most_replicas);

struct LayoutSimulator::TriedRun {
  std::optional<PlanRun> run;       // nothing where it was ended because it is sure to break a limit
  double reach = 1;                 // TriedRate::reach
  std::optional<double> used = {};  // TriedRate::used

  TriedRate tells() const { return {.holds = run && run->attained, .reach = reach, .used = used}; }
};

// Runs of one kind: of a part of the layout, as long as others, judged alike. What is called a rate here is the load of
// the whole layout: requests/s, or of a closed loop (ServingQuestion::in_flight) the requests in flight.
struct LayoutSimulator::Trial {
  const LayoutSimulator* simulator;
  const ServingLayout* layout;  // the whole
  const ServingLayout* part;    // what is simulated
  const LayoutEngines* engines;
  Judging judging;
  StepBound bound;
  int64_t first_stretch = 0;                  // of the traffic: 0 is the usual one
  bool metered = false;                       // where it is known what boards draw
  std::optional<size_t> acceptance_end = {};  // StretchTask::acceptance_end

  const std::vector<LatencySlo>& slos() const { return simulator->question_->slos; }
  // Of the rate, what the simulated part gets.
  double share() const { return static_cast<double>(part->devices()) / static_cast<double>(layout->devices()); }
  int64_t requests_at(double rate) const { return simulator->requests_for(judging.length, rate * share()); }

  StretchTask task(double rate, int64_t stretch, bool to_its_end) const;

  StretchOutcome run(const StretchTask& task) const;

  // All of it here, of one stretch or of several.
  TriedRun tried(double rate, bool to_its_end = false) const;

  TriedRun judged(const std::vector<StretchOutcome>& outcomes, const PooledLatencies& pool) const;

  // The runs before, and one that was ended when so many of its requests were late as may be of all stretches, after
  // this share of all their requests.
  TriedRun lost_after(const PooledLatencies& before, double ended_share) const;

  // Whatever requests the stretches have that are left.
  std::optional<TriedRun> lost_for_sure(const PooledLatencies& pool) const;

 private:
  struct StretchOfRun {
    double rate = 0;
    StepBound bound = StepBound::value;
    int64_t part = 0;
    bool metered = false;
    std::optional<size_t> acceptance_end = {};
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
  double used_of(const PooledLatencies& pool) const;
  // Where no request may be late, one that is uses many times what is left.
  static double used_share(double late, double percent);
  double most_used(const std::function<double(std::span<const LatencySlo>)>& late_share) const;

  // Means of the runs, with percentiles of all their requests.
  PlanRun pooled(const std::vector<StretchOutcome>& runs, const PooledLatencies& pool) const;

  bool limits_any_waiting() const;

  bool keeps_limits(const PlanRun& all, const PooledLatencies& pool) const;

  std::optional<Stretch> run_stretch(const StretchOfRun& of) const;

  // Prompts first, as replicas are.
  std::vector<std::pair<const ReadyEngine*, int64_t>> pools() const;
  bool draw_is_known() const;
  std::vector<StepWatts> replica_watts() const;
  Headline joules_per_token(const StepLog& steps, const ServingMetrics& metrics, double lasts_s) const;
};

// One rate, stretch by stretch, until it is decided.
class LayoutSimulator::RateTrial {
 public:
  RateTrial(const Trial& trial, double rate, bool to_its_end) : trial_(trial), rate_(rate), to_its_end_(to_its_end) {}

  // What `workers` run next. Of many stretches, half: the others are left out where these decide. Of two workers, one
  // would wait for the other's second of three. How many are run at once changes nothing of the decision.
  std::vector<StretchTask> next(int64_t workers = 0) const {
    const int64_t stretches = trial_.judging.stretches;
    const int64_t at_once = workers == 2 ? workers : (stretches + 1) / 2;
    const auto done = static_cast<int64_t>(outcomes_.size());
    std::vector<StretchTask> tasks;
    for (int64_t i = done; i < std::min(stretches, done + at_once); ++i) {
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

}  // namespace foretoken
