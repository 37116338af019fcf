// What kernels reach of a spec sheet, learned from devices that were measured: the estimate for a device of which no
// kernel was measured. Kept in data/kernels/sheet_derates.json, written by `foretoken fit derates`.
#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/estimate.h"
#include "model/shapes.h"

namespace foretoken {

// A kernel takes floor + compute / compute_share + memory / memory_share, where compute and memory are the two times of
// its roofline. The terms add up rather than overlap: so do they, nearly, in measurements; and a better device is never
// predicted to be slower.
struct SheetDerate {
  double floor_us = 0;       // of a kernel with next to no work
  double compute_share = 1;  // of the dense peak
  double memory_share = 1;   // of the DRAM bandwidth

  double seconds(double compute_seconds, double memory_seconds) const {
    return floor_us * 1e-6 + compute_seconds / compute_share + memory_seconds / memory_share;
  }
};

struct FamilyDerates {
  SheetDerate fast, middle, slow;  // 90% of the kernels of a device that was not measured lie between fast and slow
  double rows = 0;
  std::map<std::string, double> left_out_coverage;  // device -> % of its rows inside what was fitted without it
  std::map<std::string, double> left_out_bias;      // device -> median of predicted / measured - 1, in %
};

// The kernels that share constants: a family; of recurrent mixers each stage and phase, since a decode takes
// microseconds where the shortest prompt takes hundreds.
std::string derate_group(const KernelShape& shape);

struct SheetDerates {
  std::string source;     // where the measurements came from
  std::string fitted_on;  // date
  std::vector<std::string> devices;
  std::map<std::string, FamilyDerates, std::less<>> families;
  FamilyDerates other;  // families without measurements and without a relative that has them

  const FamilyDerates& of(std::string_view family) const;
  // Never below the roofline.
  Estimate seconds(std::string_view family, double compute_seconds, double memory_seconds) const;
};

struct DerateSample {
  std::string_view device, vendor;
  double measured_seconds = 0;
  double compute_seconds = 0, memory_seconds = 0;  // of the roofline
};

// Quantiles at 5, 50 and 95% in logarithms. Every vendor counts alike, since software of one is tuned better than that
// of another; so do the devices of a vendor, and every decade of roofline time of a device. Fast and slow lie as far
// apart as it takes for 90% of a device's rows to be inside when the device is left out of the fit.
FamilyDerates fit_family_derates(std::span<const DerateSample> samples);

// Gives families of a single device the doubt about other devices that the others have, and fills `other`.
void complete_derates(SheetDerates& derates);

SheetDerates read_sheet_derates(const std::filesystem::path& path);
std::string sheet_derates_json(const SheetDerates& derates);

}  // namespace foretoken
