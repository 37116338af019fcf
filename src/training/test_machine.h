// A cluster of the library with kernels by roofline, for tests of whole training steps: quick, and no calibrations.
#pragma once

#include <memory>
#include <string>

#include "hardware/catalogue.h"
#include "training/training_machine.h"
#include "training/training_stack.h"

namespace foretoken::training_test {

inline std::unique_ptr<MachineModels> roofline_machine(int nodes, const std::string& cluster = "h100_ib_rail") {
  const Cluster machine =
      cluster_with_nodes(HardwareCatalogue(FORETOKEN_SOURCE_DIR "/data/hardware").cluster(cluster), nodes);
  return std::make_unique<MachineModels>(machine, KernelPredictor(machine.node.device), std::nullopt, std::nullopt);
}

inline TrainingStack shipped_stack(const std::string& name = "megatron-bridge-26.08") {
  return TrainingStackCatalogue(FORETOKEN_SOURCE_DIR "/data/training/stacks").stack(name);
}

}  // namespace foretoken::training_test
