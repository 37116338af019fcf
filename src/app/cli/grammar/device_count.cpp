#include "app/cli/grammar/device_count.h"

#include "base/error.h"
#include "base/text.h"

namespace foretoken {
namespace {

bool names_device(const std::string& name, const HardwareCatalogue& hardware) {
  if (HardwareCatalogue::is_path(name)) return true;
  try {
    hardware.device(name);
    return true;
  } catch (const InputError&) {
    return false;
  }
}

// Of the usual node of this device; 1 where it is in none.
int64_t devices_of_node(const std::string& name, const HardwareCatalogue& hardware) {
  const auto node = hardware.node_with(hardware.device(name));
  return node ? node->device_count : 1;
}

// Empty where no name is near.
std::string nearest_device(const std::string& name, const HardwareCatalogue& hardware) {
  try {
    hardware.device(name);
    return "";
  } catch (const InputError& error) {
    return error.problem().suggestion;
  }
}

}  // namespace

bool has_no_count(const std::string& written, const HardwareCatalogue& hardware) {
  return written.find(':') == std::string::npos && names_device(written, hardware);
}

std::pair<std::string, std::string> named_value(const char* flag, const std::string& text, char sign,
                                                const char* expected) {
  const size_t place = text.rfind(sign);
  if (place == 0 || place == std::string::npos || place + 1 == text.size()) {
    throw InputError({.source = flag, .value = printable(text), .expected = expected});
  }
  return {text.substr(0, place), text.substr(place + 1)};
}

std::pair<std::string, std::string> device_and_count(const std::string& written, const HardwareCatalogue& hardware) {
  std::string text = written;  // "8 x H100"
  if (!HardwareCatalogue::is_path(text)) std::erase(text, ' ');
  constexpr const char* digits = "0123456789";
  const auto is_times = [&](size_t place) { return lower_case(text[place]) == 'x'; };
  const bool has_colon = text.find(':') != std::string::npos;
  const size_t before = text.find_first_not_of(digits);  // 8xH100
  if (!has_colon && before != 0 && before != std::string::npos && is_times(before) && before + 1 < text.size()) {
    return {text.substr(before + 1), text.substr(0, before)};
  }
  const size_t behind = text.find_last_not_of(digits);  // h100x8
  if (!has_colon && behind != std::string::npos && behind > 0 && behind + 1 < text.size() && is_times(behind) &&
      (names_device(text.substr(0, behind), hardware) || !names_device(text, hardware))) {
    return {text.substr(0, behind), text.substr(behind + 1)};
  }
  if (text.find_first_not_of(digits) != std::string::npos && !has_colon) {
    if (names_device(text, hardware)) return {text, std::to_string(devices_of_node(text, hardware))};
    throw InputError({.source = "--hardware",
                      .value = printable(text),
                      .expected = "a device and its number, as in H100:8 or 8xH100 (`foretoken devices` lists devices)",
                      .suggestion = nearest_device(text, hardware)});
  }
  return named_value("--hardware", text, ':', "DEVICE:COUNT, as in H100:8, or COUNTxDEVICE, as in 8xH100");
}

}  // namespace foretoken
