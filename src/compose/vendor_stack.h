// The same engine runs other kernels and launches them otherwise on other vendors' GPUs.
#pragma once

#include <string>

#include "compose/stack.h"
#include "hardware/device.h"

namespace foretoken {

// The stack of this name as it is on the device: the one that its file names for the device's platform ("vllm" is
// "vllm-rocm" on AMD's GPUs), else itself. Of the stacks that ship, the host's times are those of the device's host.
Stack stack_on(const Device& device, const std::string& name, const StackFinder& find);

// The stack on a host whose times are `factor` times as long: 2 = a host half as fast.
Stack on_host(Stack stack, double factor);

}  // namespace foretoken
