#include "training/scale/goodput.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/portable_math.h"

namespace foretoken {
namespace {

// exp(x) - 1 without losing the digits of a small x.
double growth(double x) {
  return std::abs(x) < 1e-4 ? x * (1 + x / 2 * (1 + x / 3)) : portable_exp(x) - 1;
}

void check_conditions(const RunConditions& conditions) {
  double shares = 0;
  for (const Recovery& recovery : conditions.recoveries) shares += recovery.share;
  ensure(std::abs(shares - 1) < 1e-9, "shares of recoveries add up to 1");
  ensure(conditions.mtbf_seconds > 0, "failures are some time apart");
  ensure(conditions.repeat_probability >= 0 && conditions.repeat_probability < 1, "some restart succeeds");
}

// From a failure until the job trains again, with the failures within that.
struct MeanRecovery {
  double attempts = 0;
  std::vector<double> seconds_by_kind;
  double seconds = 0;
};

MeanRecovery mean_recovery(const RunConditions& conditions) {
  double succeeds = 0;
  MeanRecovery mean;
  for (const Recovery& recovery : conditions.recoveries) {
    const double fails = -growth(-recovery.seconds / conditions.mtbf_seconds);
    succeeds += recovery.share * (1 - fails) * (1 - conditions.repeat_probability);
    mean.seconds_by_kind.push_back(recovery.share * conditions.mtbf_seconds * fails);
  }
  mean.attempts = 1 / succeeds;
  for (double& seconds : mean.seconds_by_kind) mean.seconds += seconds *= mean.attempts;
  return mean;
}

}  // namespace

double RunConditions::mean_recovery_seconds() const {
  double mean = 0;
  for (const Recovery& recovery : recoveries) mean += recovery.share * recovery.seconds;
  return mean;
}

Goodput goodput(const RunConditions& conditions, double interval_seconds) {
  check_conditions(conditions);
  ensure(interval_seconds > 0, "checkpoints are some time apart");
  const double mtbf = conditions.mtbf_seconds;
  const double period = interval_seconds + conditions.blocking_seconds;
  const MeanRecovery recovery = mean_recovery(conditions);
  const double failures =  // in work and checkpoints, per usable checkpoint
      growth(period / mtbf) * portable_exp(conditions.lag_seconds / mtbf);
  const double running = failures * mtbf;
  const double all = running + failures * recovery.seconds;

  double storage_share = 0;
  for (const Recovery& kind : conditions.recoveries) storage_share += kind.from_storage ? kind.share : 0;
  const double undone_by_each =
      0.5 * static_cast<double>(conditions.checkpoints_per_storage_copy - 1) + conditions.storage_lag_seconds / period;
  const double kept = std::max(0.0, 1 - failures * storage_share * undone_by_each);

  const double planned = conditions.planned_stops_per_second * conditions.planned_stop_seconds;
  const double share_of_second = 1 / (all * (1 + planned));  // of all time, planned stops among it
  Goodput result{.interval_seconds = interval_seconds,
                 .effective = kept * interval_seconds * share_of_second,
                 .lost = {},
                 .failures_per_second = failures * recovery.attempts * share_of_second};
  result.lost.push_back({.cause = "checkpoints", .share = kept * conditions.blocking_seconds * share_of_second});
  result.lost.push_back({.cause = "work done again", .share = (running - kept * period) * share_of_second});
  for (size_t i = 0; i < recovery.seconds_by_kind.size(); ++i) {
    result.lost.push_back({.cause = "recovery: " + conditions.recoveries[i].name,
                           .share = failures * recovery.seconds_by_kind[i] * share_of_second});
  }
  if (planned > 0) result.lost.push_back({.cause = "planned stops", .share = planned / (1 + planned)});
  return result;
}

double best_interval_seconds(const RunConditions& conditions, double least_seconds) {
  const double young = young_interval_seconds(conditions.blocking_seconds, conditions.mtbf_seconds);
  const double least = std::max({conditions.lag_seconds - conditions.blocking_seconds, 0.01 * young, least_seconds});
  const double most = std::max(10 * young, 10 * least);
  // Golden section on the logarithm: goodput rises to one maximum and falls.
  const double golden = 0.6180339887498949;
  double low = portable_log(least), high = portable_log(most);
  for (int step = 0; step < 60; ++step) {
    const double left = high - golden * (high - low), right = low + golden * (high - low);
    const bool rising =
        goodput(conditions, portable_exp(left)).effective < goodput(conditions, portable_exp(right)).effective;
    (rising ? low : high) = rising ? left : right;
  }
  return portable_exp(0.5 * (low + high));
}

double young_interval_seconds(double blocking_seconds, double mtbf_seconds) {
  return std::sqrt(2 * blocking_seconds * mtbf_seconds);
}

}  // namespace foretoken
