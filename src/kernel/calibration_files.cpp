#include "kernel/calibration_files.h"

#include <algorithm>
#include <string>
#include <system_error>

namespace foretoken {

CalibrationFiles calibration_files(const std::filesystem::path& folder) {
  CalibrationFiles files;
  std::error_code missing;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, missing)) {
    const std::filesystem::path& path = entry.path();
    if (!path.native().ends_with(".json") && !path.native().ends_with(".json.gz")) continue;
    (path.parent_path() == folder ? files.forms : files.devices).push_back(path);
  }
  std::sort(files.forms.begin(), files.forms.end());
  std::sort(files.devices.begin(), files.devices.end());
  return files;
}

}  // namespace foretoken
