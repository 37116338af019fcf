#include "serving/simulation/simulation_config.h"

#include <algorithm>

namespace foretoken {

void SimulationTotals::add(const SimulationTotals& part) {
  completed += part.completed;
  rejected += part.rejected;
  preemptions += part.preemptions;
  steps += part.steps;
  decisions += part.decisions;
  end = std::max(end, part.end);
}

}  // namespace foretoken
