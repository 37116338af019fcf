// Several models on one device, for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "serving/colocation/colocation.h"
#include "serving/results/priority_metrics.h"

namespace foretoken {

struct ColocationReport {
  struct Engine {
    std::string model;
    int64_t kv_blocks = 0;
    PriorityLatencies latencies;  // of its requests
    DeviceUse use;
  };
  Sharing sharing = Sharing::mps;
  std::vector<Engine> engines;
  double duration_s = 0;            // of the run
  std::vector<double> percentiles;  // those of the latencies
};

std::string colocation_text(const ColocationReport& report);
Json colocation_json(const ColocationReport& report);

}  // namespace foretoken
