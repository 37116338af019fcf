// Finds the measurement files below a folder: `<device>/<family>.csv[.gz]`.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "kernel/family.h"

namespace foretoken {

struct MeasurementFile {
  std::filesystem::path path;
  std::string device;  // the folder's name
  const KernelFamily* family = nullptr;
};

struct MeasurementFiles {
  std::vector<MeasurementFile> files;  // sorted by path
  std::vector<std::string> notes;      // what was found and left out
};

// `data` is a folder of device folders, a device folder, a file, or a folder of folders of device folders.
// InputError when it does not exist or holds no such file.
MeasurementFiles find_measurement_files(const std::filesystem::path& data);

}  // namespace foretoken
