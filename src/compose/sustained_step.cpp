#include "compose/sustained_step.h"

#include <algorithm>
#include <vector>

namespace foretoken {

SustainedStep sustained_step(const StepEstimate& step, const PowerModel& power, const Device& device) {
  SustainedStep result;
  std::vector<Estimate> stages;
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
  }
  result.seconds = sum_of_correlated(stages);
  return result;
}

}  // namespace foretoken
