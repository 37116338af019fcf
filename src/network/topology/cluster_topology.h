// The topology of hardware that is described by its spec sheet.
#pragma once

#include "hardware/cluster.h"
#include "hardware/node.h"
#include "network/topology/topology.h"

namespace foretoken {

// Links without a known latency have none: what a message costs beyond its bytes then comes from measurements of the
// software that sends it. Devices on PCIe hang off the host bridge of their processor (one, where the sheet names no
// processors), and processors are joined at the rate of one device.
Topology topology_of(const Node& node);

// Cards are joined to leaf switches as the cluster's fabric says, leaves to spines with one link each.
Topology topology_of(const Cluster& cluster);

}  // namespace foretoken
