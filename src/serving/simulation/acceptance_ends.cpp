#include "serving/simulation/acceptance_ends.h"

#include <utility>

namespace foretoken {

std::optional<SimulationConfig> at_acceptance_end(SimulationConfig config, size_t end) {
  bool is_unknown = false;
  for (ReplicaConfig& replica : config.replicas) {
    Speculation& speculation = replica.options.speculation;
    if (speculation.unknown_acceptance.empty()) continue;
    speculation.acceptance = speculation.unknown_acceptance[end];
    is_unknown = true;
  }
  return is_unknown ? std::optional(std::move(config)) : std::nullopt;
}

}  // namespace foretoken
