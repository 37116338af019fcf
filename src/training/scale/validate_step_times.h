// Distributions of measured step times (columns of step_times.csv: run_id, run, gpu, n_gpus, steps, mean, p05, ..., max
// in seconds) against step_variation(), and the constants of VariationModel from them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/csv.h"
#include "base/validation.h"
#include "training/scale/step_variation.h"

namespace foretoken {

struct MeasuredStepTimes {
  std::string id;
  std::string
      system;  // of the second part of `run`, up to its first _: "eos-dfw" of "v3.1 NVIDIA/eos-dfw_n512.../gpt3"
  std::string gpu;
  int64_t devices = 1, steps = 1;
  double mean = 0, p05 = 0, p25 = 0, p50 = 0, p75 = 0, p95 = 0, p99 = 0, longest = 0;
};

std::vector<MeasuredStepTimes> read_step_times(CsvReader reader);

struct StepTimeCheck {
  std::string id, gpu;
  double measured_p95 = 0, predicted_p95 = 0;  // over p50
  double measured_p99 = 0, predicted_p99 = 0;
  double measured_mean = 0, predicted_mean = 0;
};

// Each row predicted from its median and its number of devices alone.
std::vector<StepTimeCheck> validate_step_times(std::span<const MeasuredStepTimes> rows,
                                               const VariationModel& model = {});

// Runs whose p95 / p50 is within 0.02 of the measured one: what is asked of the model.
int64_t runs_within(std::span<const StepTimeCheck> checks);

// How far off p95 / p50 is, by GPU; a note counts runs_within().
Validation step_time_errors(std::span<const StepTimeCheck> checks);

// Noise and stalls from logs; spreads and jitters of devices as in `start`.
//   stalls           steps 5% longer than the median, over all device-hours; sizes by p99 and mean
//   noise below      the median over the logs of (1 - p05 / p50) / ln 10
//   noise above      the middle of the values with which most logs have p95 / p50 within 0.02
VariationModel fit_step_variation(std::span<const MeasuredStepTimes> rows, const VariationModel& start = {});

}  // namespace foretoken
