#include "training/scale/training_run.h"

#include <cmath>

#include "base/error.h"
#include "base/portable_math.h"
#include "base/units.h"

namespace foretoken {
namespace {

constexpr double z_of_p95 = 1.6448536269514722;

// Deviation of all time lost to failures: a Poisson number of them, each losing a uniform part of an interval and one
// recovery.
double deviation_of_lost_seconds(const RunConditions& conditions, double interval_seconds, double failures) {
  double mean_square = 0;
  for (const Recovery& recovery : conditions.recoveries) {
    mean_square += recovery.share * (interval_seconds * interval_seconds / 3 + interval_seconds * recovery.seconds +
                                     recovery.seconds * recovery.seconds);
  }
  return std::sqrt(failures * mean_square);
}

}  // namespace

TrainingRun training_run(const TrainingBudget& budget, const Estimate& step_seconds, const StepVariation& variation,
                         const RunConditions& conditions, const Goodput& goodput) {
  ensure(budget.tokens > 0 && budget.tokens_per_step > 0 && budget.devices > 0, "a run has tokens and devices");
  ensure(variation.p50 > 0 && goodput.effective > 0, "a run gets on");
  TrainingRun run;
  run.steps = std::ceil(budget.tokens / budget.tokens_per_step);
  const double mean_over_median = variation.mean / variation.p50;
  const double over_the_day = 1 + 0.5 * budget.day_night_swing;
  const double factor = run.steps * mean_over_median * over_the_day / goodput.effective;
  const double seconds = step_seconds.value * factor;
  run.failures = goodput.failures_per_second * seconds;
  run.checkpoints =
      std::floor(run.steps * mean_over_median * over_the_day * step_seconds.value / goodput.interval_seconds);

  // Single steps average out over a run; failures hardly.
  const double of_steps = std::sqrt(run.steps) * (variation.deviation / variation.p50) * step_seconds.value;
  const double of_failures = deviation_of_lost_seconds(conditions, goodput.interval_seconds, run.failures);
  const double spread = z_of_p95 * std::sqrt(of_steps * of_steps + of_failures * of_failures) / seconds;
  const Estimate luck{.value = 1, .low = portable_exp(-spread), .high = portable_exp(spread), .kind = variation.kind};
  run.days = scaled(product_of_independent(step_seconds, luck), factor / seconds_per_day);

  const auto rented = static_cast<double>(budget.devices + budget.spare_devices);
  run.device_hours = scaled(run.days, rented * seconds_per_day / seconds_per_hour);
  if (budget.usd_per_device_hour) run.usd = scaled(run.device_hours, *budget.usd_per_device_hour);
  if (budget.watts_per_device) run.megawatt_hours = scaled(run.device_hours, *budget.watts_per_device / mega);
  run.tokens_per_second = run.steps * budget.tokens_per_step / seconds;
  return run;
}

}  // namespace foretoken
