// One run of the packet level. Plain types only: the program around it is C++20, ns-3's headers end at C++17.
#pragma once

#include <cstdint>
#include <vector>

namespace foretoken {

// Both directions between two nodes; a link for each.
struct Cable {
  int32_t ends[2];
  double bytes_per_second[2];  // out of ends[0], out of ends[1]
  double latency_seconds;
};

struct CableUse {
  int32_t cable;
  int32_t from_end;  // 0 or 1
};

struct PacketFlow {
  std::vector<CableUse> path;
  double bytes;
  double start_seconds;
};

struct PacketSettings {
  int32_t payload_bytes;
  int32_t window_bytes;
};

// When the last byte of each flow arrives, in seconds. Each flow is one TCP connection that was opened before, with a
// fixed window and no losses: queues are as long as they need to be. Acknowledgements take the same way back.
std::vector<double> packet_level_ends(int32_t node_count, const std::vector<Cable>& cables,
                                      const std::vector<PacketFlow>& flows, const PacketSettings& settings);

}  // namespace foretoken
