// Measured rows of several devices -> what a form's constants are on a device nobody has measured.
#pragma once

#include <vector>

#include "kernel/calibration.h"
#include "kernel/fit/measured_calls.h"

namespace foretoken {

// The cross-generation tier. Its intervals come from withholding one generation after the other.
FormCalibration fit_form(const FormKind& kind, const std::vector<MeasuredDevice>& devices, const FitOptions& options);

}  // namespace foretoken
