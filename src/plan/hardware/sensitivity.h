// Which numbers of a device a workload's time hangs on.
#pragma once

#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "plan/hardware/device_change.h"

namespace foretoken {

using SecondsOnDevice = std::function<double(const Device& device)>;

struct Sensitivity {
  DeviceNumber number = DeviceNumber::memory_bandwidth;
  // By how many percent the time falls for each percent more of the number, around the device as it is: 1 = the time is
  // all this, 0 = it does not matter.
  double elasticity = 0;
  std::vector<std::pair<double, double>> times;  // factor of the number, time over that of the device as it is
};

// Of the numbers that the device's sheet has, but for the memory, which a step's time does not hang on; most important
// first.
std::vector<Sensitivity> sensitivities(const Device& device, const SecondsOnDevice& seconds,
                                       std::span<const double> factors);

}  // namespace foretoken
