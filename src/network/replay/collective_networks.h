// The networks that a replay can run on, at the two fidelities of collectives.
#pragma once

#include <functional>
#include <memory>

#include "hardware/device.h"
#include "network/collective_estimate.h"
#include "network/replay/network.h"

namespace foretoken {

// Every call takes its estimate, as if it were alone. The model must outlive the network.
std::unique_ptr<ReplayNetwork> estimated_network(const CollectiveModel& model);

// Every transfer of every call on the links of the model's topology, shared fairly among all that are under way.
std::unique_ptr<ReplayNetwork> flow_network(const CollectiveModel& model, FlowOptions options = {});

// The part of a device's processors that NCCL's kernels keep busy while a call lasts (overlap_slowdown()), for
// ReplayOptions.
std::function<double(const NetworkCall&)> nccl_busy_share(const Device& device);

}  // namespace foretoken
