// Add your line here; the name in it is what users type.
#include "network/topology/kinds/list.h"

#include "base/error.h"

namespace foretoken {

std::span<const TopologyKind> topology_kinds() {
  static const std::vector<TopologyKind> kinds = {
      switch_kind(), fully_connected_kind(), pcie_kind(), ring_kind(),      mesh_kind(),
      torus_kind(),  fat_tree_kind(),        rail_kind(), dragonfly_kind(),
  };
  return kinds;
}

std::vector<std::string> topology_kind_names() {
  std::vector<std::string> names;
  for (const TopologyKind& kind : topology_kinds()) names.emplace_back(kind.name);
  return names;
}

const TopologyKind& topology_kind(std::string_view name) {
  for (const TopologyKind& kind : topology_kinds()) {
    if (kind.name == name) return kind;
  }
  const std::vector<std::string> names = topology_kind_names();
  throw InputError({.source = "topology",
                    .value = printable(name),
                    .expected = "a kind of topology",
                    .suggestion = nearest_name(name, names).value_or("")});
}

}  // namespace foretoken
