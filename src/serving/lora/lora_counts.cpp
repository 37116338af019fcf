#include "serving/lora/lora_counts.h"

namespace foretoken {

void LoraCounts::step_ran(const StepRecord& step) {
  if (step.adapters == 0) return;
  steps += step.repeats;
  adapters_ += step.adapters * step.repeats;
  most_adapters = std::max(most_adapters, step.adapters);
  loads.from_host += step.adapter_loads.from_host;
  loads.from_disk += step.adapter_loads.from_disk;
  loads.time += step.adapter_loads.time;
}

double LoraCounts::mean_adapters() const {
  return steps == 0 ? 0 : static_cast<double>(adapters_) / static_cast<double>(steps);
}

}  // namespace foretoken
