#include "training/training_machine.h"

#include "library/library.h"
#include "network/calibration/stack_collectives.h"

namespace foretoken {

namespace {

// Those of a step, and the kernels that carry tokens to experts.
constexpr std::string_view training_laws[] = {"nccl", "oneccl", "custom_all_reduce", "deepep_normal"};

}  // namespace

std::unique_ptr<MachineModels> machine_of(const Library& library, const Cluster& cluster, Tier tier) {
  const Device& device = cluster.node.device;
  // Hosts differ in how PCIe devices reach each other; what was measured on one says little about others.
  const std::optional<Node> usual = library.hardware().node_with(device);
  const bool is_alike = cluster.node.fabric.kind != NodeFabricKind::pcie || !usual || usual->name == cluster.node.name;
  return std::make_unique<MachineModels>(
      cluster, library.predictor(device, tier),
      is_alike ? library.collectives(device, cluster.node, {}, training_laws) : std::nullopt,
      library.power_model(device));
}

}  // namespace foretoken
