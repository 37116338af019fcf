// Kernels that were held busy for seconds: sustained.csv of tools/profile_cuda.py.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/units.h"
#include "model/shapes.h"

namespace foretoken {

struct SustainedCall {
  KernelShape shape;
  std::string variant;
};

// One pass over the calls, repeated.
struct SustainedRow {
  std::string name;
  std::vector<SustainedCall> calls;
  Seconds pause;             // of a pass in which the board waits
  Seconds burst, sustained;  // of a pass
  Watts power, idle;
  Hertz clock;
};

struct SustainedFile {
  std::filesystem::path path;
  std::string device;  // the folder's name
};
// <device>/sustained*.csv[.gz] in or below `data`, by path: a device may have several boards' files. InputError when
// there is none.
std::vector<SustainedFile> find_sustained_files(const std::filesystem::path& data);

// InputError with file, row and column for what cannot be read.
std::vector<SustainedRow> read_sustained_rows(const std::filesystem::path& path);

}  // namespace foretoken
