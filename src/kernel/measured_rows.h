// Measurements that resemble a call: the nearest ones explain a prediction, all of them make a plot.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "hardware/catalogue.h"
#include "kernel/validate.h"

namespace foretoken {

struct MeasuredRow {
  std::string file;
  size_t row = 0;  // 1-based data row
  std::string device, variant;
  KernelShape shape;
  double measured_seconds = 0;
  KernelEstimate predicted;  // of this row
  double distance = 0;       // root of the sum of squared log2 ratios of the sizes; 0 = the same sizes
};

// The rows of `device` below `folder` (see KernelValidationRequest::data) with the family and number formats of the
// call, nearest first; ties in the order of the files. None where the folder has no such file; InputError where it is
// missing or broken.
std::vector<MeasuredRow> measured_rows_like(const KernelShape& shape, const std::string& device,
                                            const std::filesystem::path& folder, const HardwareCatalogue& hardware,
                                            const PredictorMaker& make_predictor);

}  // namespace foretoken
