// A device with other numbers on its sheet: what if it had more bandwidth, more processors, faster links?
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "hardware/device.h"

namespace foretoken {

// Processors and clock carry the peak rates with them.
enum class DeviceNumber { processors, clock, memory_bandwidth, cache, memory, link_bandwidth };
std::span<const DeviceNumber> all_device_numbers();
std::string_view device_number_name(DeviceNumber number);  // what users type: memory-bandwidth

bool has_number(const Device& device, DeviceNumber number);
std::string device_number_text(const Device& device, DeviceNumber number);  // "3.35 TB/s"; "unknown"

// The number times `factor`; processors become a whole number, at least one. InputError where the sheet has none.
Device with_factor(Device device, DeviceNumber number, double factor);

struct DeviceChange {
  DeviceNumber number = DeviceNumber::memory_bandwidth;
  double factor = 1;
};
// "memory-bandwidth=+20%", "sms=-10%", "clock=1.5x", "link-bandwidth=900GB/s", "memory=192GB", "sms=160".
// InputError names `field`.
DeviceChange parse_device_change(const std::string& field, const std::string& text, const Device& device);

}  // namespace foretoken
