// One collective among devices of one fast domain -> seconds.
#pragma once

#include "base/estimate.h"
#include "base/units.h"
#include "hardware/device.h"
#include "model/shapes.h"

namespace foretoken {

// What a device sends through, one direction: its device-to-device links, or PCIe where it has none.
struct Fabric {
  BytesPerSecond per_device;
  bool is_host_link = false;
};

// InputError when the sheet gives neither.
Fabric fabric_of(const Device& device);

// Bytes each device must send in a bandwidth-optimal algorithm without in-switch reduction: all-reduce 2(n-1)/n of the
// buffer, all-gather, reduce-scatter and all-to-all (n-1)/n (so does the root of a gather or scatter take or give),
// broadcast, reduce and send all of it, a barrier nothing.
// (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009.)
Bytes wire_bytes(const CollectiveShape& collective);

// A start-up time plus a multiple of the wire time at full link rate, one pair of constants for all. Fitted to 8,208
// measured collectives on NVSwitch nodes (NCCL, and custom all-reduce in CUDA graphs; A100 to B200, 512 B to 1 GiB):
// mean |log error| 0.32, and 90% of the times within 0.47 to 1.81 of the prediction. Across nodes it is a guess.
Estimate collective_seconds(const CollectiveShape& collective, const Fabric& fabric);

}  // namespace foretoken
