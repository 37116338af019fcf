#include "plan/hardware/device_change.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "base/byte_size.h"
#include "base/error.h"
#include "base/quantity_text.h"
#include "base/text.h"

namespace foretoken {
namespace {

constexpr std::array<DeviceNumber, 6> device_numbers = {DeviceNumber::processors,       DeviceNumber::clock,
                                                        DeviceNumber::memory_bandwidth, DeviceNumber::cache,
                                                        DeviceNumber::memory,           DeviceNumber::link_bandwidth};

constexpr double least_factor = 0.01, most_factor = 100;

std::optional<double> number_of(const Device& device, DeviceNumber number) {
  switch (number) {
    case DeviceNumber::processors:
      return device.processors ? std::optional<double>(device.processors->value) : std::nullopt;
    case DeviceNumber::clock:
      return device.boost_clock ? std::optional(device.boost_clock->value.value()) : std::nullopt;
    case DeviceNumber::memory_bandwidth:
      return device.memory_bandwidth ? std::optional(device.memory_bandwidth->value.value()) : std::nullopt;
    case DeviceNumber::cache:
      return device.last_level_cache ? std::optional(device.last_level_cache->value.value()) : std::nullopt;
    case DeviceNumber::memory:
      return device.memory ? std::optional(device.memory->value.value()) : std::nullopt;
    case DeviceNumber::link_bandwidth:
      return device.link_bandwidth ? std::optional(device.link_bandwidth->value.value()) : std::nullopt;
  }
  throw InternalError("a number of a device without a place");
}

void scale_peaks(Device& device, double factor) {
  const auto scale = [&](auto& peaks) {
    for (MaybeFact<FlopsPerSecond>& peak : peaks) {
      if (peak) peak->value = peak->value * factor;
    }
  };
  scale(device.dense_peak);
  scale(device.reached_peak);
}

// The part behind "=": a change by percent or factor, or the new number itself.
std::optional<double> factor_of(std::string_view text, DeviceNumber number, double now) {
  if (text.ends_with('%') && (text.starts_with('+') || text.starts_with('-'))) {
    const auto percent =
        parse_number(text.substr(text.starts_with('+') ? 1 : 0, text.size() - (text[0] == '+' ? 2 : 1)));
    return percent ? std::optional(1 + *percent / 100) : std::nullopt;
  }
  if (text.ends_with('x')) return parse_number(text.substr(0, text.size() - 1));
  switch (number) {
    case DeviceNumber::memory_bandwidth:
    case DeviceNumber::link_bandwidth: {
      const auto rate = parse_rate(text);
      return rate ? std::optional(rate->value() / now) : std::nullopt;
    }
    case DeviceNumber::memory:
    case DeviceNumber::cache: {
      const auto bytes = parse_bytes(text);
      return bytes ? std::optional(*bytes / now) : std::nullopt;
    }
    case DeviceNumber::processors: {
      const auto count = parse_number(text);
      return count ? std::optional(*count / now) : std::nullopt;
    }
    case DeviceNumber::clock: {
      if (!text.ends_with("MHz")) return std::nullopt;
      const auto mhz = parse_number(text.substr(0, text.size() - 3));
      return mhz ? std::optional(*mhz * 1e6 / now) : std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace

std::span<const DeviceNumber> all_device_numbers() {
  return device_numbers;
}

std::string_view device_number_name(DeviceNumber number) {
  switch (number) {
    case DeviceNumber::processors:
      return "sms";
    case DeviceNumber::clock:
      return "clock";
    case DeviceNumber::memory_bandwidth:
      return "memory-bandwidth";
    case DeviceNumber::cache:
      return "cache";
    case DeviceNumber::memory:
      return "memory";
    case DeviceNumber::link_bandwidth:
      return "link-bandwidth";
  }
  throw InternalError("a number of a device without a name");
}

bool has_number(const Device& device, DeviceNumber number) {
  return number_of(device, number).has_value();
}

std::string device_number_text(const Device& device, DeviceNumber number) {
  const auto value = number_of(device, number);
  if (!value) return "unknown";
  switch (number) {
    case DeviceNumber::processors:
      return fmt::format("{:.0f}", *value);
    case DeviceNumber::clock:
      return fmt::format("{:.0f} MHz", *value / 1e6);
    case DeviceNumber::memory_bandwidth:
    case DeviceNumber::link_bandwidth:
      return rate_text(*value, "B/s");
    case DeviceNumber::cache:
    case DeviceNumber::memory:
      return bytes_text(*value);
  }
  throw InternalError("a number of a device without a unit");
}

Device with_factor(Device device, DeviceNumber number, double factor) {
  if (!has_number(device, number)) {
    throw InputError({.source = device.name,
                      .value = std::string(device_number_name(number)),
                      .expected = "a number that the device's sheet has"});
  }
  switch (number) {
    case DeviceNumber::processors: {
      const int before = device.processors->value;
      device.processors->value = std::max(1, static_cast<int>(std::lround(before * factor)));
      scale_peaks(device, static_cast<double>(device.processors->value) / before);
      break;
    }
    case DeviceNumber::clock:
      device.boost_clock->value = device.boost_clock->value * factor;
      scale_peaks(device, factor);
      break;
    case DeviceNumber::memory_bandwidth:
      device.memory_bandwidth->value = device.memory_bandwidth->value * factor;
      break;
    case DeviceNumber::cache:
      device.last_level_cache->value = device.last_level_cache->value * factor;
      break;
    case DeviceNumber::memory:
      device.memory->value = device.memory->value * factor;
      if (device.allocatable_memory) device.allocatable_memory->value = device.allocatable_memory->value * factor;
      break;
    case DeviceNumber::link_bandwidth:
      device.link_bandwidth->value = device.link_bandwidth->value * factor;
      break;
  }
  return device;
}

DeviceChange parse_device_change(const std::string& field, const std::string& text, const Device& device) {
  const size_t sign = text.find('=');
  const std::string name = text.substr(0, sign);
  std::vector<std::string> names;
  for (const DeviceNumber number : device_numbers) {
    names.emplace_back(device_number_name(number));
    if (names.back() != name) continue;
    const auto now = number_of(device, number);
    if (!now) {
      throw InputError({.field = field, .value = printable(text), .expected = "a number that the device's sheet has"});
    }
    const auto factor =
        sign == std::string::npos ? std::nullopt : factor_of(std::string_view(text).substr(sign + 1), number, *now);
    if (!factor || !(*factor >= least_factor && *factor <= most_factor)) {
      throw InputError({.field = field,
                        .value = printable(text),
                        .expected = fmt::format("{}=+20%, ={}x or a new number with its unit, a hundredth to a hundred "
                                                "times {}",
                                                name, "1.5", device_number_text(device, number))});
    }
    return {.number = number, .factor = *factor};
  }
  throw InputError({.field = field,
                    .value = printable(text),
                    .expected = fmt::format("one of {}, with a change such as =+20%", fmt::join(names, ", ")),
                    .suggestion = nearest_name(name, names).value_or("")});
}

}  // namespace foretoken
