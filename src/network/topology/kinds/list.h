// The kinds of topology there are.
#pragma once

#include "network/topology/topology_kind.h"

namespace foretoken {

std::span<const TopologyKind> topology_kinds();
const TopologyKind& topology_kind(std::string_view name);  // InputError with the nearest name
std::vector<std::string> topology_kind_names();

// One function per kind, each in a file of its own or of its relatives.
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
