// All calibrations of a folder, for those who look at each of them.
#pragma once

#include <filesystem>
#include <vector>

namespace foretoken {

struct CalibrationFiles {
  std::vector<std::filesystem::path> forms, devices;  // sorted
};

// `folder` as in calibration.h; nothing when it is not there.
CalibrationFiles calibration_files(const std::filesystem::path& folder);

}  // namespace foretoken
