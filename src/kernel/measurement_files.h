// Finds the measurement files below a folder: `<device>/<family>.csv[.gz]`, and tables of several devices.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "kernel/family.h"
#include "kernel/operator_table.h"

namespace foretoken {

struct MeasurementFile {
  std::filesystem::path path;
  std::string device;  // the folder's name, or as the table spells it
  const KernelFamily* family = nullptr;
  // Only the rows of this device and family in a table of several; a family of null stands for the rows of none.
  std::optional<OperatorTableKind> table;
  std::string device_text;  // as the table spells it
};

struct MeasurementFiles {
  std::vector<MeasurementFile> files;  // sorted by path
  std::vector<std::string> notes;      // what was found and left out
};

// `data` is a folder of device folders, a device folder, a file, a folder of folders of device folders, or a table of
// operators (operator_table.h) or a folder of such: one entry for each device and family in a table.
// InputError when it does not exist or holds no such file.
MeasurementFiles find_measurement_files(const std::filesystem::path& data);

}  // namespace foretoken
