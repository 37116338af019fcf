// One dimension of ASTRA-sim's network, and a time it would answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace foretoken {

enum class AstraTopology { ring, fully_connected, network_switch };
enum class AstraAlgorithm { ring, direct, halving_doubling, double_binary_tree };

struct AstraDimension {
  AstraTopology topology = AstraTopology::ring;
  AstraAlgorithm algorithm = AstraAlgorithm::ring;
  int64_t npus = 1;
  double bandwidth_gib_per_s = 0;  // ASTRA-sim writes GB/s and means 2^30
  double latency_ns = 0;
};

// Nanoseconds until the last NPU is done, or why there is no closed form.
struct AstraTime {
  std::optional<int64_t> nanoseconds;
  std::string no_closed_form;
};

}  // namespace foretoken
