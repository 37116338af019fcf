// Where a library's calibrations are read from.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "kernel/calibration.h"
#include "kernel/calibration_pack.h"

namespace foretoken {

// JSON files laid out as in calibration.h, read by way of the pack where that holds what they say. `own` is a second
// folder with sweeps of the user's devices; a sweep there comes first. Thread-safe.
class CalibrationFolder {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): a folder without a pack is the usual case in tests and tools
  CalibrationFolder(std::filesystem::path folder, CalibrationPack pack = {}, std::filesystem::path own = {})
      : folder_(std::move(folder)), own_(std::move(own)), pack_(std::move(pack)) {}

  const std::filesystem::path& path() const { return folder_; }

  // Nothing where there is no such file; InputError for one that is damaged.
  std::optional<FormCalibration> form(std::string_view form) const;
  std::optional<DeviceCalibration> device(std::string_view device, std::string_view form) const;

 private:
  std::filesystem::path folder_, own_;
  CalibrationPack pack_;
};

}  // namespace foretoken
