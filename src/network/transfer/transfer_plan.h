// What a collective sends, independent of the links it crosses: the common language of the closed form, the flow level
// and the packet level.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"

namespace foretoken {

// Bytes from one device to another. Devices are numbered as in the topology, not by rank in the group.
struct Transfer {
  int32_t from = 0;
  int32_t to = 0;
  double bytes = 0;
  // Reduced and multicast inside the switches (NVLS, SHARP): the bytes go up to the switch and a copy comes down. A
  // link that several such transfers of a stage cross carries the bytes of the largest, once, instead of their sum.
  bool in_switch = false;
};

// Transfers that start together and end together: each moves at a rate in proportion to its bytes, and the slowest path
// sets the pace of all. A pipelined ring is one stage, however many chunks it cuts its buffer into: every neighbour
// passes on all of its bytes, and `messages` of them lie one behind the other on the critical path, each of which pays
// the latency of its links and `per_message`.
struct Stage {
  std::vector<Transfer> transfers;
  int64_t messages = 1;
  Seconds per_message;
};

// Stages one after another, after `start` (launch and set-up on the host and the device).
struct TransferPlan {
  Seconds start;
  std::vector<Stage> stages;
};

}  // namespace foretoken
