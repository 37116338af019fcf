// `validate --without GENERATION`.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/cli/grammar/options.h"
#include "validate/withheld/withheld_calibrations.h"

namespace foretoken {

struct WithheldFlags {
  std::string without;
  std::vector<std::string> kernel_data;

  // Beside --tier and --calibration of the command. `has_kernels`: its --data are kernels, which are fitted as well.
  void declare(Options& options, bool has_kernels);
  bool is_wanted() const { return !without.empty(); }

  // Of --calibration, else fitted: to `data` of kernels, else to those of --kernel-data.
  std::unique_ptr<WithheldCalibrations> calibrations(const Library& library, const std::string& calibration,
                                                     const std::vector<std::string>& data = {},
                                                     const std::vector<std::string>& families = {}) const;
};

}  // namespace foretoken
