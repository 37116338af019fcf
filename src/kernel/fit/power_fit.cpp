#include "kernel/fit/power_fit.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "base/portable_math.h"
#include "base/statistics.h"
#include "kernel/fit/hierarchical_fit.h"

namespace foretoken {
namespace {

constexpr size_t fewest_rows = 12;
// A slowdown counts as much as the power it comes from; the clock is a hint.
constexpr double slowdown_weight = 1.5, clock_weight = 0.15;
constexpr size_t errors_per_row = 3;
constexpr double unlimited = 0.96;  // of the board's limit: below, nothing holds a kernel back

bool is_mix(const SustainedRow& row) {
  return row.calls.size() != 1 || row.pause.value() > 0;
}

double slowdown_of(const SustainedRow& row) {
  return row.sustained / row.burst;
}

struct FitRow {
  const SustainedRow* row = nullptr;
  std::vector<BusyKernel> mix;
};

// What does not need fitting: the sheet, the idle power, the power that a limited board holds.
PowerCalibration frame_of(const Device& device, const std::vector<SustainedRow>& rows) {
  PowerCalibration result;
  result.device = device.name;
  result.limit_watts = device.power_limit->value.value();
  result.bandwidth = device.memory_bandwidth->value.value();
  result.peak_16 = device.peak_or_fallback(DType::bf16)->value();
  result.peak_8 = device.peak_or_fallback(DType::fp8)->value();
  std::vector<double> idle, held;
  for (const SustainedRow& row : rows) {
    idle.push_back(row.idle.value());
    constexpr double near_limit = 0.97, clearly_slower = 1.03;
    const double share = row.power.value() / result.limit_watts;
    if (share > near_limit && slowdown_of(row) > clearly_slower) held.push_back(share);
  }
  result.idle_watts = quantile(idle, 0.5);
  result.limit_share = held.empty() ? 1 : quantile(held, 0.5);
  return result;
}

PowerCalibration fit_constants(const Device& device, PowerCalibration frame, const std::vector<FitRow>& rows) {
  const auto facts = power_constant_facts();
  HierarchicalFit fit{.constants = facts.size(), .huber_scale = 0.03, .rounds = 25};
  FitEffect common{.name = "common", .strength = 0.02, .pull_to_start = true};
  for (const PowerConstantFacts& fact : facts) {
    fit.bounds.push_back({portable_log(fact.least), portable_log(fact.most)});
    common.offsets.push_back(portable_log(fact.start));
  }
  fit.effects.push_back(std::move(common));
  fit.groups.push_back({.effects = {0}, .rows = rows.size() * errors_per_row});
  const auto calibration_at = [&](std::span<const double> logs) {
    PowerCalibration calibration = frame;
    for (size_t k = 0; k < facts.size(); ++k) calibration.constants[k] = portable_exp(logs[k]);
    return calibration;
  };
  solve(fit, [&](size_t index, std::span<const double> logs, int& choice) {
    choice = 0;
    const FitRow& row = rows[index / errors_per_row];
    const PowerCalibration calibration = calibration_at(logs);
    const SustainedPower power = PowerModel::make(device, {&calibration, 1})->sustained(row.mix);
    switch (index % errors_per_row) {
      case 0:
        return portable_log(power.watts.value / row.row->power.value());
      case 1:
        return slowdown_weight * portable_log(power.slowdown.value / slowdown_of(*row.row));
      default:
        return clock_weight * portable_log(power.clock / row.row->clock);
    }
  });
  const size_t only[] = {0};
  return calibration_at(log_constants(fit, only));
}

PowerCheck check(const Device& device, const PowerCalibration& calibration, const SustainedRow& row,
                 const std::vector<BusyKernel>& mix) {
  return {.name = row.name,
          .is_mix = is_mix(row),
          .measured_watts = row.power.value(),
          .measured_slowdown = slowdown_of(row),
          .measured_clock_hertz = row.clock.value(),
          .predicted = PowerModel::make(device, {&calibration, 1})->sustained(mix, row.pause)};
}

}  // namespace

std::vector<BusyKernel> busy_kernels(const SustainedRow& row, const Device& device, const CallSeconds& seconds_of) {
  std::vector<BusyKernel> mix;
  double sum = 0;
  for (const SustainedCall& call : row.calls) {
    const double seconds = row.calls.size() == 1 ? 1 : seconds_of(call);
    sum += seconds;
    mix.push_back({.work = count_work(call.shape),
                   .burst_seconds = Seconds(seconds),
                   .activity = activity_of(call.shape, call.variant, device)});
  }
  for (BusyKernel& kernel : mix) kernel.burst_seconds = kernel.burst_seconds * ((row.burst - row.pause).value() / sum);
  return mix;
}

PowerFit fit_power(const Device& device, const std::vector<SustainedRow>& rows, const CallSeconds& seconds_of) {
  if (!device.power_limit || !device.memory_bandwidth || !device.boost_clock || !device.peak_or_fallback(DType::bf16) ||
      !device.peak_or_fallback(DType::fp8)) {
    throw InputError({.source = device.name,
                      .path = "power_limit_w, memory_bandwidth_gb_per_s, boost_clock_mhz, dense_peak_tflops",
                      .value = "(not known)",
                      .expected = "a device file with all of them"});
  }
  std::vector<FitRow> single;
  for (const SustainedRow& row : rows) {
    if (!is_mix(row)) single.push_back({.row = &row, .mix = busy_kernels(row, device, seconds_of)});
  }
  if (single.size() < fewest_rows) {
    throw InputError({.source = fmt::format("sustained kernels of {}", device.name),
                      .value = fmt::format("{} rows of a single kernel", single.size()),
                      .expected = fmt::format("at least {}: foretoken profile cuda {{only}} sustained", fewest_rows)});
  }
  const PowerCalibration frame = frame_of(device, rows);
  PowerFit result{.calibration = fit_constants(device, frame, single)};
  std::vector<PowerCalibration> without;  // each row
  std::vector<double> watts_errors, slowdown_errors;
  for (const SustainedRow& row : rows) {
    std::vector<FitRow> others;
    for (const FitRow& other : single) {
      if (other.row->name != row.name) others.push_back(other);
    }
    without.push_back(is_mix(row) ? result.calibration : fit_constants(device, frame, others));
    const PowerCheck checked = check(device, without.back(), row, busy_kernels(row, device, seconds_of));
    // What kernels want shows only where the limit does not hide it.
    if (checked.measured_watts < unlimited * frame.limit_watts) {
      watts_errors.push_back(std::abs(portable_log(checked.predicted.watts.value / checked.measured_watts)));
    }
    slowdown_errors.push_back(std::abs(checked.predicted.slowdown.value - checked.measured_slowdown));
  }
  constexpr double no_unlimited_rows = 0.2;
  result.calibration.rows = single.size();
  result.calibration.watts_half_width = watts_errors.empty() ? no_unlimited_rows : quantile(watts_errors, 0.9);
  result.calibration.slowdown_half_width = quantile(slowdown_errors, 0.9);
  for (size_t i = 0; i < rows.size(); ++i) {
    without[i].watts_half_width = result.calibration.watts_half_width;
    without[i].slowdown_half_width = result.calibration.slowdown_half_width;
    result.left_out.push_back(check(device, without[i], rows[i], busy_kernels(rows[i], device, seconds_of)));
  }
  return result;
}

}  // namespace foretoken
