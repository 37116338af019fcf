// The same engine runs other kernels and launches them otherwise on other vendors' GPUs.
#pragma once

#include <string>
#include <string_view>

#include "hardware/device.h"

namespace foretoken {

// The stack that this one is on the device: "vllm" is "vllm-rocm" on AMD's GPUs. A stack that has no other form, and a
// file, stays what it is.
std::string stack_on(std::string_view stack, const Device& device);

}  // namespace foretoken
