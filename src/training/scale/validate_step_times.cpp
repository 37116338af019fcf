#include "training/scale/validate_step_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/portable_math.h"
#include "base/statistics.h"
#include "base/units.h"

namespace foretoken {
namespace {

constexpr double allowed_distance = 0.02;  // of p95 / p50
constexpr double stall_begins = 1.05;      // medians

std::string system_of(std::string_view run) {
  const size_t slash = run.find('/');
  const std::string_view rest = slash == std::string_view::npos ? run : run.substr(slash + 1);
  return std::string(rest.substr(0, rest.find_first_of("_/")));
}

StepPieces pieces_of(const MeasuredStepTimes& row) {
  return {.replicas = row.devices, .other_seconds = row.p50, .median_seconds = row.p50};
}

// Share of the steps longer than `stall_begins` medians: between quantiles, the logarithm of the share beyond is linear
// in the logarithm of what is beyond the median.
double share_of_stalls(const MeasuredStepTimes& row) {
  const double threshold = stall_begins - 1;
  const double beyond[] = {row.p75 / row.p50 - 1, row.p95 / row.p50 - 1, row.p99 / row.p50 - 1,
                           row.longest / row.p50 - 1};
  const double shares[] = {0.25, 0.05, 0.01, 1.0 / static_cast<double>(row.steps)};
  if (beyond[0] >= threshold) return shares[0];
  for (size_t i = 1; i < std::size(beyond); ++i) {
    if (beyond[i] < threshold) continue;
    const double before = std::max(beyond[i - 1], 1e-6);
    const double part = portable_log(threshold / before) / portable_log(beyond[i] / before);
    return shares[i - 1] * portable_pow(shares[i] / shares[i - 1], std::clamp(part, 0.0, 1.0));
  }
  return 0;
}

double stalls_per_device_hour(std::span<const MeasuredStepTimes> rows) {
  double stalls = 0, device_hours = 0;
  for (const MeasuredStepTimes& row : rows) {
    const auto steps = static_cast<double>(row.steps);
    stalls += steps * share_of_stalls(row);
    device_hours += steps * static_cast<double>(row.devices) * row.p50 / seconds_per_hour;
  }
  return stalls / device_hours;
}

// Relative error of what p99 is beyond the median, and percents that the mean is off.
double stall_error(std::span<const MeasuredStepTimes> rows, const VariationModel& model) {
  double error = 0;
  for (const StepTimeCheck& check : validate_step_times(rows, model)) {
    error += std::abs(portable_log((check.predicted_p99 - 1) / std::max(1e-6, check.measured_p99 - 1)));
    error += 100 * std::abs(check.predicted_mean - check.measured_mean);
  }
  return error;
}

void fit_stall_sizes(std::span<const MeasuredStepTimes> rows, VariationModel& model) {
  double least = std::numeric_limits<double>::infinity();
  VariationModel tried = model;
  for (const double median : {0.04, 0.06, 0.08, 0.12, 0.16, 0.24, 0.32}) {
    for (const double sigma : {0.7, 1.0, 1.3, 1.6}) {
      tried.stall_median = median;
      tried.stall_sigma = sigma;
      if (const double error = stall_error(rows, tried); error < least) {
        least = error;
        model = tried;
      }
    }
  }
}

void fit_noise_above(std::span<const MeasuredStepTimes> rows, VariationModel& model) {
  int64_t most = -1;
  double first = 0, last = 0;
  for (int tried = 1; tried <= 200; ++tried) {
    model.step_jitter_above = tried * 2e-4;
    const int64_t within = runs_within(validate_step_times(rows, model));
    if (within > most) first = model.step_jitter_above;
    if (within >= most) last = model.step_jitter_above;
    most = std::max(most, within);
  }
  model.step_jitter_above = 0.5 * (first + last);
}

}  // namespace

std::vector<MeasuredStepTimes> read_step_times(CsvReader reader) {
  const size_t id = reader.column("run_id"), run = reader.column("run"), gpu = reader.column("gpu");
  const size_t devices = reader.column("n_gpus"), steps = reader.column("steps");
  const auto seconds = [&reader](const char* name) {
    return reader.number(reader.column(name), {.least = 1e-9, .most = 1e9});
  };
  std::vector<MeasuredStepTimes> rows;
  while (reader.next()) {
    rows.push_back({.id = std::string(reader.cell(id)),
                    .system = system_of(reader.cell(run)),
                    .gpu = std::string(reader.cell(gpu)),
                    .devices = reader.integer(devices, {.least = 1, .most = 100'000'000}),
                    .steps = reader.integer(steps, {.least = 1, .most = 1'000'000'000'000}),
                    .mean = seconds("mean"),
                    .p05 = seconds("p05"),
                    .p25 = seconds("p25"),
                    .p50 = seconds("p50"),
                    .p75 = seconds("p75"),
                    .p95 = seconds("p95"),
                    .p99 = seconds("p99"),
                    .longest = seconds("max")});
    const MeasuredStepTimes& row = rows.back();
    if (!(row.p05 <= row.p50 && row.p50 <= row.p95 && row.p95 <= row.p99 && row.p99 <= row.longest)) {
      reader.fail(reader.column("p50"), "p05 <= p50 <= p95 <= p99 <= max");
    }
  }
  return rows;
}

std::vector<StepTimeCheck> validate_step_times(std::span<const MeasuredStepTimes> rows, const VariationModel& model) {
  std::vector<StepTimeCheck> checks;
  for (const MeasuredStepTimes& row : rows) {
    const StepTimeDistribution times(pieces_of(row), model);
    checks.push_back({.id = row.id,
                      .gpu = row.gpu,
                      .measured_p95 = row.p95 / row.p50,
                      .predicted_p95 = times.quantile(0.95) / row.p50,
                      .measured_p99 = row.p99 / row.p50,
                      .predicted_p99 = times.quantile(0.99) / row.p50,
                      .measured_mean = row.mean / row.p50,
                      .predicted_mean = times.mean() / row.p50});
  }
  return checks;
}

int64_t runs_within(std::span<const StepTimeCheck> checks) {
  return std::count_if(checks.begin(), checks.end(), [](const StepTimeCheck& check) {
    return std::abs(check.predicted_p95 - check.measured_p95) <= allowed_distance;
  });
}

Validation step_time_errors(std::span<const StepTimeCheck> checks) {
  ValidationTally tally(0);
  Validation validation{.has_intervals = false};
  for (const StepTimeCheck& check : checks) {
    tally.add(check.gpu, {.measured = check.measured_p95, .predicted = check.predicted_p95}, 0);
  }
  tally.write(validation);
  validation.notes.push_back(
      fmt::format("p95 / p50 of {} of {} runs within {}", runs_within(checks), checks.size(), allowed_distance));
  return validation;
}

VariationModel fit_step_variation(std::span<const MeasuredStepTimes> rows, const VariationModel& start) {
  ensure(!rows.empty(), "constants are fitted to at least one log");
  VariationModel model = start;
  model.stalls_per_device_hour = stalls_per_device_hour(rows);
  std::vector<double> below;
  for (const MeasuredStepTimes& row : rows) below.push_back((1 - row.p05 / row.p50) / portable_log(10));
  model.step_jitter_below = quantile(below, 0.5);
  fit_noise_above(rows, model);
  fit_stall_sizes(rows, model);
  fit_noise_above(rows, model);  // sizes shift p95 a little
  return model;
}

}  // namespace foretoken
