// A cluster of the library with kernels by roofline, for tests of whole training steps: quick, and no calibrations.
#pragma once

#include <memory>
#include <string>

#include "hardware/catalogue.h"
#include "training/iteration.h"
#include "training/training_machine.h"
#include "training/training_stack.h"

namespace foretoken::training_test {

inline Cluster library_cluster(int nodes, const std::string& cluster = "h100_ib_rail") {
  return cluster_with_nodes(HardwareCatalogue(FORETOKEN_SOURCE_DIR "/data/hardware").cluster(cluster), nodes);
}

inline std::unique_ptr<MachineModels> roofline_machine(const Cluster& cluster) {
  return std::make_unique<MachineModels>(cluster, KernelPredictor(cluster.node.device), std::nullopt, std::nullopt);
}

inline std::unique_ptr<MachineModels> roofline_machine(int nodes, const std::string& cluster = "h100_ib_rail") {
  return roofline_machine(library_cluster(nodes, cluster));
}

// Usual constants, and a host that is never in the way.
inline TrainingStack plain_stack() {
  TrainingStack stack{.name = "plain", .summary = "made up", .source = "made up"};
  for (const TrainingConstant host : {host_layer_us, host_micro_batch_us, step_us}) stack.constants[host] = 1;
  return stack;
}

inline TrainingStack shipped_stack(const std::string& name = "megatron-bridge-26.08") {
  return TrainingStackCatalogue(FORETOKEN_SOURCE_DIR "/data/training/stacks").stack(name);
}

inline double part_of(const IterationEstimate& estimate, TimePart part) {
  return estimate.parts[static_cast<size_t>(part)].value;
}

inline IterationEstimate step_of(const TrainingJob& job, const TrainingPlan& plan, const MachineModels& machine,
                                 const TrainingStack& stack = plain_stack()) {
  check_plan(job.model, job.sequence_length, plan, 0);
  return IterationModel(job, stack, machine.machine()).estimate(plan);
}

}  // namespace foretoken::training_test
