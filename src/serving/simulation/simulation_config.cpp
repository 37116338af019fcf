#include "serving/simulation/simulation_config.h"

#include <algorithm>

namespace foretoken {

RunParts parts_of(const SimulationConfig& config) {
  RunParts parts;
  if (config.colocation) parts.add(RunPart::colocation);
  if (config.disaggregation) parts.add(RunPart::separate_pools);
  if (config.kv_tiers) parts.add(RunPart::kv_tiers);
  if (config.samples.count > 1) parts.add(RunPart::samples);
  for (const ReplicaConfig& replica : config.replicas) {
    if (replica.adapters.device_slots > 0) parts.add(RunPart::adapters);
    if (replica.ffn_apart) parts.add(RunPart::ffn_pool);
  }
  if (!config.fleet) return parts;
  parts.add(RunPart::fleet);
  if (config.fleet->failures.gpu_mtbf_hours > 0) parts.add(RunPart::failures);
  if (!config.fleet->drains.empty()) parts.add(RunPart::drains);
  if (config.fleet->admission.any()) parts.add(RunPart::admission);
  if (config.fleet->region_policy.spill != Spill::never) parts.add(RunPart::regions);
  return parts;
}

void SimulationTotals::add(const SimulationTotals& part) {
  completed += part.completed;
  rejected += part.rejected;
  preemptions += part.preemptions;
  steps += part.steps;
  decisions += part.decisions;
  end = std::max(end, part.end);
}

}  // namespace foretoken
