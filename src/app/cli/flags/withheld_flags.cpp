#include "app/cli/flags/withheld_flags.h"

#include "app/cli/output/progress.h"

namespace foretoken {

void WithheldFlags::declare(Options& options, bool has_kernels) {
  options.text("--without", without,
               "Score GPUs of this generation (hopper, sm_90, or one of its devices) with calibrations that have never "
               "seen it: from the spec sheet alone, and with a sweep");
  if (has_kernels) return;
  options.list(
      "--kernel-data", kernel_data,
      "With --without: kernel measurements to fit from if no --calibration is given (folders, comma-separated)");
}

std::unique_ptr<WithheldCalibrations> WithheldFlags::calibrations(const Library& library,
                                                                  const std::string& calibration,
                                                                  const std::vector<std::string>& data,
                                                                  const std::vector<std::string>& families) const {
  return withheld_calibrations({.without = without,
                                .calibration = calibration,
                                .kernel_data = data.empty() ? kernel_data : data,
                                .families = families,
                                .tell = show_progress},
                               library);
}

}  // namespace foretoken
