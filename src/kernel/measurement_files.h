// Finds the measurement files below a folder: `<device>/<family>.csv[.gz]`, tables of operators on several devices
// (operator_table.h), or tables of measurement_formats/.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "kernel/family.h"
#include "kernel/measurement_format.h"
#include "kernel/operator_table.h"

namespace foretoken {

struct MeasurementFile {
  std::filesystem::path path;
  std::string device;                         // the folder's name, or as the table spells it
  const KernelFamily* family = nullptr;       // null: rows of several families
  const MeasurementFormat* format = nullptr;  // null: our own layout, or a table of operators
  // Only the rows of this device and family in a table of operators; a family of null stands for those of none.
  std::optional<OperatorTableKind> table = {};
  std::string device_text = {};  // as the table spells it
};

// A table that holds no kernels, and why.
struct LeftOutFile {
  std::filesystem::path path;
  std::string why;
};

struct MeasurementFiles {
  std::vector<MeasurementFile> files;  // sorted by path
  std::vector<LeftOutFile> left_out;
  std::vector<std::string> notes;  // what was found and left out
};

// `data` is a folder of device folders, a device folder, a file, a folder of folders of device folders, or a table of
// operators or a folder of such: one entry for each device and family in a table. A folder that holds tables of another
// format is read as that. InputError when it does not exist or holds no such file.
MeasurementFiles find_measurement_files(const std::filesystem::path& data);

}  // namespace foretoken
