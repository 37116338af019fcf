#include "plan/hardware/sensitivity.h"

#include <algorithm>

#include "base/error.h"
#include "base/portable_math.h"

namespace foretoken {

std::vector<Sensitivity> sensitivities(const Device& device, const SecondsOnDevice& seconds,
                                       std::span<const double> factors) {
  constexpr double step = 1.1;  // up and down, for the slope
  const double own = seconds(device);
  ensure(own > 0, "a workload takes time");
  std::vector<Sensitivity> all;
  for (const DeviceNumber number : all_device_numbers()) {
    if (number == DeviceNumber::memory || !has_number(device, number)) continue;
    Sensitivity result{.number = number};
    const double more = seconds(with_factor(device, number, step));
    const double less = seconds(with_factor(device, number, 1 / step));
    result.elasticity = -portable_log(more / less) / (2 * portable_log(step));
    for (const double factor : factors) {
      result.times.emplace_back(factor, seconds(with_factor(device, number, factor)) / own);
    }
    all.push_back(std::move(result));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Sensitivity& a, const Sensitivity& b) { return a.elasticity > b.elasticity; });
  return all;
}

}  // namespace foretoken
