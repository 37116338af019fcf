// A device adapted from timings of any networks and kernels, for people and programs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "kernel/edge/adapt_edge.h"

namespace foretoken {

struct NetworkAdaptationReport {
  struct Network {
    std::string name;
    Estimate seconds;
  };

  std::string known_device;  // whose prices are the prior
  size_t timings = 0;
  std::optional<double> own_mape;  // of each timing predicted from the others
  const AdaptedEdge& adapted;
  std::vector<Network> predicted;
};

std::string network_adaptation_text(const NetworkAdaptationReport& report);
Json network_adaptation_json(const NetworkAdaptationReport& report);
std::string network_adaptation_csv(const NetworkAdaptationReport& report);

}  // namespace foretoken
