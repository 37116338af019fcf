#include "serving/fleet/cold_start.h"

#include <algorithm>

namespace foretoken {

Seconds cold_start_time(const ColdStart& settings, Bytes weights_per_device, int devices, BytesPerSecond host_link) {
  Seconds loading = weights_per_device * static_cast<double>(devices) / settings.storage;
  if (host_link.value() > 0) loading = std::max(loading, weights_per_device / host_link);
  return settings.provisioning + loading + settings.engine_start;
}

}  // namespace foretoken
