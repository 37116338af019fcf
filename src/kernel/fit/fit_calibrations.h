// Folders of measurements -> a folder of calibrations: every form, then the measured tier of every device.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "hardware/catalogue.h"
#include "kernel/calibration_folder.h"
#include "kernel/fit/measured_calls.h"
#include "kernel/validate.h"

namespace foretoken {

struct CalibrationSummary {
  struct Entry {
    std::string form;
    std::string device;
    size_t rows = 0;
    // Its generation withheld; 0 = could not be. Over all rows, over those of 20 us and more, and the share of all
    // inside 90% intervals that were made without the generation.
    double withheld_mape = 0, withheld_mape_20us = 0, withheld_coverage = 0;
    // A fifth of its rows held out, or the rows outside the sweep; 0 = not fitted.
    double held_out_mape = 0, held_out_mape_20us = 0, held_out_coverage = 0;
  };
  std::vector<Entry> entries;
  // Rows that FitOptions::hold_out kept from all tiers, under the sweep of their device.
  struct HeldOut {
    std::string form, device, group;
    size_t rows = 0;
    double mape = 0, coverage = 0;
  };
  std::vector<HeldOut> held_out;
  size_t files = 0;
};

// The measured tier of the devices of a request on top of cross tiers that exist already: writes
// <folder>/<device>/<form>.json.gz for each form with enough rows. The same errors.
CalibrationSummary fit_sweeps(const KernelValidationRequest& request, const HardwareCatalogue& hardware,
                              const FitOptions& options, const CalibrationFolder& cross,
                              const std::filesystem::path& folder);

// Which devices get a measured tier. withheld: those that the cross tier must not see (FitOptions::without), from the
// rows that are not held out (is_held_out in kernel/validate.h).
enum class Sweeps { none, all, withheld };

// What `name` means: a device's generation, or the one with this instruction set (sm_90) or title (Hopper). InputError
// for a name nobody knows.
std::string generation_named(const std::string& name, const HardwareCatalogue& hardware);

// Writes <folder>/<form>.json and <folder>/<device>/<form>.json.gz.
// InputError for measurements that cannot be right: rows whose times are off by a unit are named with their file.
CalibrationSummary fit_calibrations(const std::vector<KernelValidationRequest>& requests,
                                    const HardwareCatalogue& hardware, const FitOptions& options, Sweeps sweeps,
                                    const std::filesystem::path& folder);

}  // namespace foretoken
