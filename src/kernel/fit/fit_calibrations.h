// Folders of measurements -> a folder of calibrations: every form, then the measured tier of every device.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "hardware/catalogue.h"
#include "kernel/fit/fit_calibration.h"
#include "kernel/validate.h"

namespace foretoken {

struct CalibrationSummary {
  struct Entry {
    std::string form;
    std::string device;
    size_t rows = 0;
    double withheld_mape = 0;  // its generation withheld; 0 = could not be
    double held_out_mape = 0;  // a fifth of its rows held out; 0 = not fitted
  };
  std::vector<Entry> entries;
  size_t files = 0;
};

// Writes <folder>/<form>.json and, with `measured_tiers`, <folder>/<device>/<form>.json.gz.
// InputError for measurements that cannot be right: a device whose times are off by a unit is named with its rows.
CalibrationSummary fit_calibrations(const std::vector<KernelValidationRequest>& requests,
                                    const HardwareCatalogue& hardware, const FitOptions& options, bool measured_tiers,
                                    const std::filesystem::path& folder);

}  // namespace foretoken
