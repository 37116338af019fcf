#include "network/transfer/collective.h"

#include <algorithm>

#include "base/error.h"

namespace foretoken {

Fabric fabric_of(const Device& device) {
  if (device.link_bandwidth) return {.per_device = device.link_bandwidth->value, .is_host_link = false};
  if (device.host_bandwidth) return {.per_device = device.host_bandwidth->value, .is_host_link = true};
  throw InputError({.source = "device " + device.name,
                    .path = "link bandwidth",
                    .value = "unknown",
                    .expected = "a link or host bandwidth in the device's file, to run on more than one of them"});
}

Bytes wire_bytes(const CollectiveShape& collective) {
  const auto ranks = static_cast<double>(collective.ranks);
  if (collective.ranks <= 1) return Bytes(0);
  const double others_share = (ranks - 1) / ranks;
  switch (collective.kind) {
    case CollectiveKind::all_reduce:
      return Bytes(2 * others_share * collective.bytes);
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_to_all:
    case CollectiveKind::gather:
    case CollectiveKind::scatter:
      return Bytes(others_share * collective.bytes);
    case CollectiveKind::barrier:
      return Bytes(0);
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
    case CollectiveKind::send_recv:
      return Bytes(collective.bytes);
  }
  throw InternalError("every collective has a wire volume");
}

Estimate collective_seconds(const CollectiveShape& collective, const Fabric& fabric) {
  if (collective.ranks <= 1) return exactly(0);
  constexpr Seconds start = microseconds(10);
  constexpr double wire_factor = 1.7, fastest = 0.47, slowest = 1.81;
  const Seconds wire = wire_bytes(collective) / fabric.per_device;
  const double seconds = (start + wire_factor * wire).value();
  return {.value = seconds,
          .low = std::max(wire.value(), fastest * seconds),
          .high = slowest * seconds,
          .kind = Confidence::extrapolated};
}

}  // namespace foretoken
