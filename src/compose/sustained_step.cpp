#include "compose/sustained_step.h"

#include <algorithm>
#include <vector>

namespace foretoken {
namespace {

Estimate beyond(const Estimate& watts, double idle) {
  return {.value = std::max(0.0, watts.value - idle),
          .low = std::max(0.0, watts.low - idle),
          .high = std::max(0.0, watts.high - idle),
          .kind = watts.kind};
}

}  // namespace

SustainedStep sustained_step(const StepEstimate& step, const PowerModel& power, const Device& device) {
  SustainedStep result;
  std::vector<Estimate> stages, above_idle;  // joules of the second
  double passes = 0;                         // seconds of all stages
  const auto ranks = static_cast<double>(step.plan.tensor * step.plan.context);
  for (const StageEstimate& stage : step.stages) {
    std::vector<BusyKernel> mix;
    double busy = 0;
    for (const TimedLaunch& timed : stage.launches) {
      if (!timed.kernel) continue;
      mix.push_back({.work = timed.kernel->work,
                     .burst_seconds = Seconds(timed.kernel->seconds.value),
                     .activity = activity_of(timed.launch.shape, timed.launch.variant, device),
                     .calls = static_cast<double>(timed.launch.count)});
      busy += timed.seconds.value;
    }
    const SustainedPower own = power.sustained(mix, Seconds(std::max(0.0, stage.time.seconds - busy)));
    result.joules += own.joules.value * ranks;
    // The slowdown is of the whole pass, its idle time included.
    stages.push_back(product_of_independent(stage.seconds, own.slowdown));
    if (own.watts.value > result.power.watts.value) result.power = own;
    const double seconds = own.joules.value / own.watts.value;
    passes += seconds;
    above_idle.push_back(scaled(beyond(own.watts, power.idle_watts()), ranks * seconds));
  }
  result.above_idle = scaled(sum_of_correlated(above_idle), 1 / passes);
  result.seconds = sum_of_correlated(stages);
  return result;
}

}  // namespace foretoken
