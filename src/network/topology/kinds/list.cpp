// Add your line here; the name in it is what users type.
#include "network/topology/kinds/list.h"
#include "base/kinds.h"

#include "base/error.h"

namespace foretoken {

std::span<const TopologyKind> topology_kinds() {
  static const std::vector<TopologyKind> kinds = {
      switch_kind(), fully_connected_kind(), pcie_kind(), ring_kind(),      mesh_kind(),
      torus_kind(),  fat_tree_kind(),        rail_kind(), dragonfly_kind(),
  };
  return kinds;
}

const TopologyKind& topology_kind(std::string_view name) {
  return kind_named(topology_kinds(), name, {.source = "topology", .expected = "a kind of topology"});
}

}  // namespace foretoken
