// Measured rows of several devices -> calibrations of a form.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "hardware/device.h"
#include "kernel/calibration.h"
#include "kernel/fit/fit_errors.h"
#include "kernel/forms/list.h"

namespace foretoken {

struct MeasuredCall {
  FormCall call;
  double seconds = 0;
};

// One device's rows for one form.
struct MeasuredDevice {
  Device device;
  std::vector<MeasuredCall> rows;
  std::vector<MeasuredCall> lent;  // of FormKind::lenders
  // Call groups that stream weights at a fraction of the bandwidth: the kernel is at fault, not the device. They are
  // kept out of what ports; the measured tier learns them.
  std::set<std::string, std::less<>> pathological_groups;
  // Call groups faster than DRAM could be: they were not measured at the sizes they state. Only the measured tier
  // learns them, and they are no test of what ports.
  std::set<std::string, std::less<>> impossible_groups;
  bool withheld = false;  // by FitOptions::without
};

// What a fit leaves out of all tiers to be scored on: nothing, a fifth of each device's rows, or all rows of a fifth of
// its layers (call_layer).
enum class HoldOut { nothing, rows, layers };

struct FitOptions {
  uint64_t seed = 1;
  std::string source, date;  // kept in the files
  // Generations, or devices of them, that the cross tier must not see (generation_named). With a sweep_size, or as
  // Sweeps::withheld, they still get a measured tier: a sweep on top of constants that have never seen their kind.
  std::vector<std::string> without;
  std::vector<std::string> without_devices;  // the same, but others of their generation stay
  HoldOut hold_out = HoldOut::nothing;
  std::vector<std::string> families;       // only rows of these; empty = all
  std::vector<std::string> sweep_devices;  // measured tiers of these alone; empty = of all
  size_t sweep_size = 0;                   // measured tier: this many random rows; 0 = all
  // Measured tier from a probe: this many rows of each call group (kernel and dtype), spread evenly over predicted
  // times; 0 = no probe. Not with a sweep_size.
  size_t probe_rows = 0;
  std::function<void(const std::string&)> progress;
};

// The cross-generation tier. Its intervals come from withholding one generation after the other.
FormCalibration fit_form(const FormKind& kind, const std::vector<MeasuredDevice>& devices, const FitOptions& options);

// The measured tier of one device on top of `cross` (fitted with or without that device). Intervals come from fifths of
// the rows that a trial fit has not seen, or from models that it has not seen where rows come from a few of them; the
// error too, or from all rows outside the sweep where sweep_size leaves some.
DeviceCalibration fit_device(const FormKind& kind, const FormCalibration& cross, const MeasuredDevice& measured,
                             const FitOptions& options);

// Puts a sweep that was fitted earlier on top of new cross constants: kernels that it measured keep theirs, those that
// it did not measure take what its kernels have in common beside the new ones. False where nothing changes, and where
// `measured` lacks rows of one of its groups.
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
