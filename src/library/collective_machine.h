// A machine that runs collectives, with what was measured on its like.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "hardware/device.h"
#include "network/collective_estimate.h"

namespace foretoken {

class Library;

struct CollectiveMachine {
  std::unique_ptr<const CommunicationPredictor> measured;  // the model looks at it
  CollectiveModel model;
  std::optional<Device> device;  // nothing for a topology
};

// `known`: times that were measured on this very cluster.
CollectiveMachine collective_machine(const Library& library, Cluster cluster, CollectiveOptions options = {},
                                     std::vector<KnownTime> known = {});

}  // namespace foretoken
