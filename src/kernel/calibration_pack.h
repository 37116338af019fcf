// Calibrations in the form in which the program holds them, packed into one file when the program is built: reading
// them back takes a twentieth of the time that unpacking and parsing JSON does.
//
// JSON stays the source. An entry is found by the digest of the JSON file's bytes, so one that was edited, fitted anew
// or never packed is not mistaken for it and is read as JSON. What is packed passed all checks of calibration.h before;
// a digest of each entry tells damage since.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "kernel/calibration.h"

namespace foretoken {

// Thread-safe: the file is opened for each entry.
class CalibrationPack {
 public:
  CalibrationPack() = default;  // holds nothing
  // A file that is missing, damaged or of another layout holds nothing.
  explicit CalibrationPack(std::filesystem::path file);

  // What was packed from a JSON file of these bytes; nothing if none was.
  std::optional<FormCalibration> form(std::span<const uint8_t> json_file) const;
  std::optional<DeviceCalibration> device(std::span<const uint8_t> json_file) const;

 private:
  struct Entry {
    uint64_t source = 0;  // digest of the JSON file
    uint64_t offset = 0, size = 0;
    uint64_t content = 0;  // digest of the entry
  };
  friend std::vector<uint8_t> pack_calibrations(const std::filesystem::path& folder);
  template <class Calibration>
  std::optional<Calibration> find(std::span<const uint8_t> json_file) const;

  std::filesystem::path file_;
  std::vector<Entry> entries_;  // by source
};

// The pack of all calibrations in a folder (laid out as in calibration.h). InputError for one that is damaged.
std::vector<uint8_t> pack_calibrations(const std::filesystem::path& folder);

}  // namespace foretoken
