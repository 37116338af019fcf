// Days, device-hours, energy and money until a training run has seen its tokens.
#pragma once

#include <cstdint>
#include <optional>

#include "base/estimate.h"
#include "training/scale/goodput.h"
#include "training/scale/step_variation.h"

namespace foretoken {

struct TrainingBudget {
  double tokens = 0;
  double tokens_per_step = 0;
  int64_t devices = 1;                        // that train
  int64_t spare_devices = 0;                  // that wait: paid for and, as an upper bound, as hot as the others
  std::optional<double> usd_per_device_hour;  // hardware/rent.h has list prices
  std::optional<double> watts_per_device;     // from the grid
  // Steps at the worst time of the day take so much longer than at the best: 1-2% for Llama 3, by the temperature
  // outside (arXiv 2407.21783, section 3.3.4). The given step is one of the best time.
  double day_night_swing = 0;
};

// Estimates: low and high are the p05 and p95 of runs.
struct TrainingRun {
  double steps = 0;
  Estimate days;
  Estimate device_hours;
  std::optional<Estimate> usd, megawatt_hours;
  double tokens_per_second = 0;  // of all time, stops included
  double failures = 0;           // expected
  double checkpoints = 0;
};

// `step_seconds` is the median step with the interval of its prediction; `variation` says how steps lie around it.
TrainingRun training_run(const TrainingBudget& budget, const Estimate& step_seconds, const StepVariation& variation,
                         const RunConditions& conditions, const Goodput& goodput);

}  // namespace foretoken
