#include "training/scale/failures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/portable_math.h"
#include "base/units.h"

namespace foretoken {
namespace {

constexpr double hours_per_day = 24;

// Broken devices at a time are Poisson distributed: each is away for the same while.
double probability_of_no_spare(double broken_on_average, int64_t spares) {
  double term = portable_exp(-broken_on_average), below = 0;
  for (int64_t broken = 0; broken < spares; ++broken) {
    below += term;
    term *= broken_on_average / static_cast<double>(broken + 1);
  }
  return std::clamp(1 - below, 0.0, 1.0);
}

struct Interruptions {
  double single_per_hour = 0, group_per_hour = 0;
  double replaced_devices_per_hour = 0;
  double all_per_hour() const { return single_per_hour + group_per_hour; }
};

Interruptions interruptions_of(const FailureModel& failures, int64_t devices) {
  ensure(devices > 0 && failures.device_mtbf_hours > 0, "a job has devices, and they do not fail all the time");
  double shares = 0, replaced = 0;
  for (const FailureClass& kind : failures.classes) {
    shares += kind.share;
    replaced += kind.replaces_device ? kind.share : 0;
  }
  ensure(std::abs(shares - 1) < 1e-9, "shares of failure classes add up to 1");
  Interruptions result{.single_per_hour = static_cast<double>(devices) / failures.device_mtbf_hours};
  result.replaced_devices_per_hour = replaced * result.single_per_hour;
  if (failures.group_mtbf_hours > 0) {
    ensure(failures.group_devices > 0, "a group that fails together has devices");
    result.group_per_hour =
        static_cast<double>(devices) / static_cast<double>(failures.group_devices) / failures.group_mtbf_hours;
    result.replaced_devices_per_hour += result.group_per_hour * static_cast<double>(failures.group_devices);
  }
  return result;
}

}  // namespace

std::vector<FailureClass> llama3_failure_classes() {
  constexpr double all = 419;
  return {
      {.name = "GPU and its memory", .share = (148 + 72 + 19 + 17 + 6 + 6) / all, .replaces_device = true},
      {.name = "host", .share = (32 + 7) / all, .replaces_device = true},
      {.name = "network", .share = (35 + 7) / all, .replaces_device = true},
      {.name = "software", .share = 54 / all, .replaces_device = false},
      {.name = "other", .share = 16 / all, .replaces_device = false},
  };
}

JobReliability job_reliability(const FailureModel& failures, const RecoveryPlan& recovery,
                               const CheckpointPlan& checkpoints, int64_t devices) {
  const Interruptions interruptions = interruptions_of(failures, devices);
  JobReliability job{.mtbf_hours = 1 / interruptions.all_per_hour(),
                     .failures_per_day = interruptions.all_per_hour() * hours_per_day,
                     .checkpoint = checkpoint_seconds(checkpoints, devices),
                     .conditions = {}};
  if (recovery.spare_devices > 0) {
    job.no_spare_probability = probability_of_no_spare(interruptions.replaced_devices_per_hour * recovery.repair_hours,
                                                       recovery.spare_devices);
  }
  const double another_device =
      recovery.swap_seconds * (1 - job.no_spare_probability) + recovery.replacement_seconds * job.no_spare_probability;

  RunConditions& conditions = job.conditions;
  conditions.mtbf_seconds = job.mtbf_hours * seconds_per_hour;
  conditions.blocking_seconds = job.checkpoint.blocking;
  conditions.lag_seconds = job.checkpoint.lag;
  conditions.storage_lag_seconds = job.checkpoint.storage_lag;
  conditions.repeat_probability = failures.repeat_probability;
  conditions.planned_stops_per_second = failures.planned_stops_per_day / (hours_per_day * seconds_per_hour);
  conditions.planned_stop_seconds = failures.planned_stop_seconds + job.checkpoint.blocking + job.checkpoint.reload;
  const double restart = recovery.detect_seconds + recovery.restart_seconds;
  const double single_share = interruptions.single_per_hour / interruptions.all_per_hour();
  for (const FailureClass& kind : failures.classes) {
    conditions.recoveries.push_back(
        {.name = kind.name,
         .share = kind.share * single_share,
         .seconds = restart + (kind.replaces_device ? another_device : 0) + job.checkpoint.reload});
  }
  if (interruptions.group_per_hour > 0) {
    conditions.recoveries.push_back({.name = "several devices at once",
                                     .share = 1 - single_share,
                                     .seconds = restart + recovery.replacement_seconds + job.checkpoint.storage_reload,
                                     .from_storage = checkpoints.mode == CheckpointMode::in_memory});
  }
  return job;
}

Goodput job_goodput(const JobReliability& reliability, const CheckpointPlan& checkpoints) {
  RunConditions conditions = reliability.conditions;
  const double least = conditions.lag_seconds - conditions.blocking_seconds;
  if (checkpoints.interval_seconds && *checkpoints.interval_seconds < least) {
    throw InputError(
        {.path = "checkpoint interval",
         .value = fmt::format("{:.4g} s", *checkpoints.interval_seconds),
         .expected = fmt::format("at least {:.4g} s: writing the previous checkpoint takes that long", least)});
  }
  const double interval =
      checkpoints.interval_seconds.value_or(best_interval_seconds(conditions, checkpoints.least_interval_seconds));
  if (checkpoints.mode == CheckpointMode::in_memory) {
    const double copies = checkpoints.storage_copy_seconds / (interval + conditions.blocking_seconds);
    conditions.checkpoints_per_storage_copy = std::max<int64_t>(1, static_cast<int64_t>(std::round(copies)));
  }
  return goodput(conditions, interval);
}

}  // namespace foretoken
