// One function per kind of topology, each in a file of its own or of its relatives.
#pragma once

#include "network/topology/topology_kind.h"

namespace foretoken {

TopologyKind switch_kind();
TopologyKind fully_connected_kind();
TopologyKind pcie_kind();
TopologyKind ring_kind();
TopologyKind mesh_kind();
TopologyKind torus_kind();
TopologyKind fat_tree_kind();
TopologyKind rail_kind();
TopologyKind dragonfly_kind();

}  // namespace foretoken
