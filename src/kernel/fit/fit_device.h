// A device's own rows on top of what other devices taught: its measured tier, and how far it carries to its siblings.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernel/calibration.h"
#include "kernel/fit/fit_errors.h"
#include "kernel/fit/measured_calls.h"

namespace foretoken {

// The measured tier of one device on top of `cross` (fitted with or without that device). Intervals come from fifths of
// the rows that a trial fit has not seen, or from models that it has not seen where rows come from a few of them; the
// error too, or from all rows outside the sweep where sweep_size leaves some.
DeviceCalibration fit_device(const FormKind& kind, const FormCalibration& cross, const MeasuredDevice& measured,
                             const FitOptions& options);

// Puts a sweep that was fitted earlier on top of new cross constants: kernels that it measured keep theirs, those that
// it did not measure take what its kernels have in common beside the new ones. False where nothing changes, as with a
// probe, and where `measured` lacks rows of one of its groups.
bool rebase_sweep(const FormKind& kind, const FormCalibration& cross, const MeasuredDevice& measured,
                  DeviceCalibration& sweep);

// How far a sweep is off on rows that it has not seen, by call group. Groups that it does not know are left out.
struct UnseenErrors {
  FitErrors errors;
  size_t inside = 0;  // of 90% intervals
};
std::map<std::string, UnseenErrors> errors_of_sweep(const FormKind& kind, const DeviceCalibration& sweep,
                                                    const Device& device, const std::vector<MeasuredCall>& rows);

// Intervals of a device that is predicted with the sweep of another one of its generation, from every such pair: what
// is left beside the half-width of carried_to_sibling, to be added in quadrature.
// Nothing where no two devices of a generation have sweeps.
std::optional<HalfWidths> sibling_half_widths(const FormKind& kind, const std::vector<MeasuredDevice>& devices,
                                              const std::map<std::string, DeviceCalibration>& sweeps);

}  // namespace foretoken
