// The run that goodput() speaks of, failure by failure: what its closed form is held to.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "training/scale/goodput.h"

namespace foretoken {

struct DrawnRun {
  double wall_seconds = 0;
  double effective = 0;
  int64_t failures = 0, checkpoints = 0;
  std::vector<LostTime> lost;  // causes as goodput() lists them
};

class FailingRun {
 public:
  FailingRun(const RunConditions& conditions, double interval_seconds, double training_seconds, uint64_t seed)
      : conditions_(conditions),
        interval_(interval_seconds),
        period_(interval_seconds + conditions.blocking_seconds),
        wanted_(static_cast<int64_t>(std::ceil(training_seconds / interval_seconds))),
        kind_(shares_of(conditions)),
        failures_(seed, "failures"),
        kinds_(seed, "kinds of failures"),
        planned_(seed, "planned stops"),
        recovery_seconds_(conditions.recoveries.size()) {}

  DrawnRun run() {
    bool fresh = true;  // no usable checkpoint since the start or the last recovery
    while (usable_ < wanted_) {
      const double until_failure = failures_.exponential(conditions_.mtbf_seconds);
      const double first = period_ + (fresh ? conditions_.lag_seconds : 0);
      int64_t gained = until_failure < first ? 0 : 1 + static_cast<int64_t>((until_failure - first) / period_);
      if (usable_ + gained >= wanted_) {
        gained = wanted_ - usable_;
        running_seconds_ += first + static_cast<double>(gained - 1) * period_;
        usable_ = wanted_;
        break;
      }
      usable_ += gained;
      running_seconds_ += until_failure;
      ++result_.failures;
      recover();
      fresh = true;
    }
    stop_as_planned();
    return summary();
  }

 private:
  static std::vector<double> shares_of(const RunConditions& conditions) {
    std::vector<double> shares;
    for (const Recovery& recovery : conditions.recoveries) shares.push_back(recovery.share);
    return shares;
  }

  void recover() {
    for (;;) {
      const size_t kind = kind_.draw(kinds_);
      const Recovery& recovery = conditions_.recoveries[kind];
      if (recovery.from_storage) fall_back_to_storage();
      const double until_failure = failures_.exponential(conditions_.mtbf_seconds);
      recovery_seconds_[kind] += std::min(until_failure, recovery.seconds);
      if (until_failure >= recovery.seconds && kinds_.uniform() >= conditions_.repeat_probability) return;
      ++result_.failures;
    }
  }

  void fall_back_to_storage() {
    const double late = conditions_.storage_lag_seconds / period_;
    const auto every = static_cast<double>(conditions_.checkpoints_per_storage_copy);
    const double copies = std::floor((static_cast<double>(usable_) - late) / every);
    usable_ = std::max<int64_t>(0, static_cast<int64_t>(copies * every));
  }

  void stop_as_planned() {
    if (conditions_.planned_stops_per_second == 0) return;
    double unplanned = running_seconds_;
    for (const double seconds : recovery_seconds_) unplanned += seconds;
    const double apart = 1 / conditions_.planned_stops_per_second;
    for (double at = planned_.exponential(apart); at < unplanned; at += planned_.exponential(apart)) {
      planned_seconds_ += conditions_.planned_stop_seconds;
    }
  }

  DrawnRun summary() {
    const auto kept = static_cast<double>(wanted_);
    double wall = running_seconds_ + planned_seconds_;
    for (const double seconds : recovery_seconds_) wall += seconds;
    result_.wall_seconds = wall;
    result_.checkpoints = wanted_;
    result_.effective = kept * interval_ / wall;
    result_.lost.push_back({.cause = "checkpoints", .share = kept * conditions_.blocking_seconds / wall});
    result_.lost.push_back({.cause = "work done again", .share = (running_seconds_ - kept * period_) / wall});
    for (size_t i = 0; i < recovery_seconds_.size(); ++i) {
      result_.lost.push_back(
          {.cause = "recovery: " + conditions_.recoveries[i].name, .share = recovery_seconds_[i] / wall});
    }
    if (conditions_.planned_stops_per_second > 0) {
      result_.lost.push_back({.cause = "planned stops", .share = planned_seconds_ / wall});
    }
    return std::move(result_);
  }

  const RunConditions& conditions_;
  double interval_, period_;
  int64_t wanted_;      // usable checkpoints
  int64_t usable_ = 0;  // so far
  WeightedIndex kind_;
  RandomStream failures_, kinds_, planned_;
  double running_seconds_ = 0, planned_seconds_ = 0;
  std::vector<double> recovery_seconds_;
  DrawnRun result_;
};

// Until `training_seconds` of work are in usable checkpoints. Costs a few draws for each failure.
inline DrawnRun draw_run(const RunConditions& conditions, double interval_seconds, double training_seconds,
                         uint64_t seed) {
  ensure(interval_seconds > 0 && training_seconds > 0, "a run trains, and checkpoints are some time apart");
  ensure(conditions.mtbf_seconds > 0, "failures are some time apart");
  return FailingRun(conditions, interval_seconds, training_seconds, seed).run();
}

}  // namespace foretoken
