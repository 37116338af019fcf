#include "serving/lora/adapter_cache.h"

#include "base/error.h"

namespace foretoken {

bool AdapterCache::Recent::touch(int32_t adapter) {
  const auto found = places_.find(adapter);
  if (found != places_.end()) {
    order_.splice(order_.end(), order_, found->second);
    return true;
  }
  places_.emplace(adapter, order_.insert(order_.end(), adapter));
  return false;
}

void AdapterCache::Recent::remove(int32_t adapter) {
  const auto found = places_.find(adapter);
  if (found == places_.end()) return;
  order_.erase(found->second);
  places_.erase(found);
}

int32_t AdapterCache::Recent::take_oldest_beyond_limit() {
  if (order_.size() <= most_) return -1;
  const int32_t oldest = order_.front();
  remove(oldest);
  return oldest;
}

AdapterCache::AdapterCache(const AdapterLoading& loading)
    : loading_(loading), device_(loading.device_slots), host_(loading.host_slots) {
  ensure(loading.host_slots >= loading.device_slots, "adapters on the device are in the host's memory too");
}

AdapterLoads AdapterCache::use(std::span<const int32_t> adapters) {
  ensure(adapters.size() <= loading_.device_slots, "a step has a slot for each of its adapters");
  AdapterLoads loads;
  // All are marked as used before any leaves, so that none of this step does.
  for (const int32_t adapter : adapters) {
    if (!host_.touch(adapter)) ++loads.from_disk;
    if (!device_.touch(adapter)) ++loads.from_host;
  }
  for (int32_t gone = host_.take_oldest_beyond_limit(); gone >= 0; gone = host_.take_oldest_beyond_limit()) {
    device_.remove(gone);
  }
  while (device_.take_oldest_beyond_limit() >= 0) {
  }
  loads.time = to_picoseconds(loading_.from_host * static_cast<double>(loads.from_host)) +
               to_picoseconds(loading_.from_disk * static_cast<double>(loads.from_disk));
  return loads;
}

}  // namespace foretoken
