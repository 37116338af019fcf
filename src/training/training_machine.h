// What predicts kernels, collectives and power of a cluster.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "hardware/cluster.h"
#include "kernel/kernel.h"
#include "kernel/power.h"
#include "network/collective_estimate.h"
#include "training/piece_costs.h"

namespace foretoken {

class Library;

// Holds what a TrainingMachine points to. Stays where it is made: collectives refer to what was measured.
class MachineModels {
 public:
  MachineModels(const Cluster& cluster, KernelPredictor kernels, std::optional<CommunicationPredictor> measured,
                std::optional<PowerModel> power)
      : kernels_(std::move(kernels)),
        measured_(std::move(measured)),
        network_(cluster, {.measured = measured_ ? &*measured_ : nullptr}),
        power_(std::move(power)) {}
  MachineModels(const MachineModels&) = delete;
  MachineModels& operator=(const MachineModels&) = delete;

  TrainingMachine machine() const {
    return {.kernels = &kernels_,
            .network = &network_,
            .measured = measured_ ? &*measured_ : nullptr,
            .power = power_ ? &*power_ : nullptr};
  }
  const Device& device() const { return kernels_.device(); }

 private:
  KernelPredictor kernels_;
  std::optional<CommunicationPredictor> measured_;
  CollectiveModel network_;
  std::optional<PowerModel> power_;
};

// What the library knows of the cluster's devices and links.
std::unique_ptr<MachineModels> machine_of(const Library& library, const Cluster& cluster, Tier tier = Tier::best);

using MachineMaker = std::function<std::unique_ptr<MachineModels>(const Cluster&)>;

}  // namespace foretoken
