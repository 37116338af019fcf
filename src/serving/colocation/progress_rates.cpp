#include "serving/colocation/progress_rates.h"

#include <algorithm>

#include "base/error.h"
#include "base/portable_math.h"

namespace foretoken {

double reachable_bandwidth(double processors) {
  constexpr double steepness = 2.4;
  return 1 - portable_pow(1 - std::clamp(processors, 0.0, 1.0), steepness);
}

double partition_rate(const StepDemand& demand, const DeviceShare& share) {
  return 1 / std::max({1.0, demand.compute / share.processors, demand.memory / share.bandwidth});
}

std::vector<double> shared_rates(std::span<const StepDemand> demands, std::span<const DeviceShare> shares) {
  ensure(demands.size() == shares.size(), "every engine has a share");
  std::vector<double> rates;
  double compute = 0, memory = 0, busy = 0, processors = 0;
  int running = 0;
  for (size_t i = 0; i < demands.size(); ++i) {
    const double bandwidth = std::min(shares[i].bandwidth, reachable_bandwidth(shares[i].processors));
    const double alone = partition_rate(demands[i], {.processors = shares[i].processors, .bandwidth = bandwidth});
    compute += alone * demands[i].compute;
    memory += alone * demands[i].memory;
    busy += alone * demands[i].busy;
    if (demands[i].busy > 0) {
      processors += shares[i].processors;
      ++running;
    }
    rates.push_back(alone);
  }
  const double load = std::max(compute, memory);
  const double overlap = running > 1 ? std::clamp((processors - 1) / (running - 1), 0.0, 1.0) : 0;
  const double stretch = std::max(1.0, load + overlap_lost * overlap * (busy - load));
  for (double& rate : rates) rate /= stretch;
  return rates;
}

}  // namespace foretoken
