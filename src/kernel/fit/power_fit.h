// Sustained measurements of one board -> its power calibration.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernel/power.h"
#include "kernel/sustained_rows.h"

namespace foretoken {

// Seconds of a call on a cool board: how the measured time of a pass is shared out among several kernels.
using CallSeconds = std::function<double(const SustainedCall& call)>;

// One row, predicted by a fit that has not seen it.
struct PowerCheck {
  std::string name;
  bool is_mix = false;  // several kernels or a pause: never part of a fit
  double measured_watts = 0, measured_slowdown = 1, measured_clock_hertz = 0;
  SustainedPower predicted;
};

struct PowerFit {
  PowerCalibration calibration;
  std::vector<PowerCheck> left_out;  // in the order of the rows
};

// The row's kernels as the power model takes them, their times sharing out the measured burst.
std::vector<BusyKernel> busy_kernels(const SustainedRow& row, const Device& device, const CallSeconds& seconds_of);

// Fits on rows of a single kernel; each of them is checked by a fit without it, mixes by the fit on all. InputError for
// too few rows or a device without power limit, bandwidth or 16-bit peak.
PowerFit fit_power(const Device& device, const std::vector<SustainedRow>& rows, const CallSeconds& seconds_of);

}  // namespace foretoken
