#include "serving/tiers/host_link.h"

#include "base/error.h"

namespace foretoken {

BytesPerSecond host_copy_bandwidth(const Device& device, const std::string& field) {
  constexpr double efficiency = 0.86;
  if (!device.host_bandwidth) {
    throw InputError({.field = field,
                      .path = device.name,
                      .value = "no known bandwidth to the host",
                      .expected = "a device whose file gives host_bandwidth_gb_per_s"});
  }
  return device.host_bandwidth->value * efficiency;
}

}  // namespace foretoken
