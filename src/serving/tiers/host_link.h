// Between a device and its host's memory.
#pragma once

#include <string>

#include "base/units.h"
#include "hardware/device.h"

namespace foretoken {

// Pinned memory, one direction, large copies: 0.86 of the sheet's bandwidth (55.3 of 64 GB/s on an H200,
// data/measured/h200_sxm/host_copy.csv). InputError, which names the field that needs it, where the sheet has none.
BytesPerSecond host_copy_bandwidth(const Device& device, const std::string& field);

}  // namespace foretoken
