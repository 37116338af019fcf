#include "kernel/calibration_folder.h"

#include <system_error>

#include "base/file.h"
#include "base/json.h"

namespace foretoken {
namespace {

bool is_there(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

}  // namespace

std::optional<FormCalibration> CalibrationFolder::form(std::string_view form) const {
  const std::filesystem::path path = form_calibration_path(folder_, form);
  if (!is_there(path)) return std::nullopt;
  if (auto packed = pack_.form(read_raw_file(path, JsonLimits().max_bytes))) return packed;
  return read_form_calibration(path);
}

std::optional<DeviceCalibration> CalibrationFolder::device(std::string_view device, std::string_view form) const {
  if (!own_.empty()) {
    if (const auto own = device_calibration_path(own_, device, form); is_there(own)) {
      return read_device_calibration(own);
    }
  }
  const std::filesystem::path path = device_calibration_path(folder_, device, form);
  if (!is_there(path)) return std::nullopt;
  if (auto packed = pack_.device(read_raw_file(path, JsonLimits().max_bytes))) return packed;
  return read_device_calibration(path);
}

}  // namespace foretoken
