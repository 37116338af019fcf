#include "app/cli/machine_flags.h"

#include <vector>

#include "base/error.h"
#include "network/topology/topology_file.h"

namespace foretoken {
namespace {

template <size_t count>
std::vector<std::string> list_of(const std::string_view (&names)[count]) {
  return {std::begin(names), std::end(names)};
}

template <class Value, size_t count>
Value named(const std::string_view (&names)[count], std::string_view text) {
  for (size_t i = 0; i < count; ++i) {
    if (names[i] == text) return static_cast<Value>(i);
  }
  throw InternalError("the parser lets only known names through");
}

}  // namespace

void MachineFlags::declare_machine(Options& options) {
  options.heading("Machine (one of)");
  options.text("--cluster", cluster, "A cluster of the library (foretoken devices) or a cluster file");
  options.text("--node", node, "A node of the library or a node file");
  options.text("--topology", topology, "Links only: a line such as switch:8@450GB/s,500ns or a topology file");
  options.integer("--nodes", nodes, {.least = 0, .most = most_nodes}, "With --cluster: that many nodes; 0 = its own");
  options.integer("--domain", domain, {.least = 0},
                  "With --topology: devices of a fast domain, for hierarchical algorithms; 0 = all");
}

void MachineFlags::declare_fidelity(Options& options, const std::string& name) {
  options.choice(name, fidelity, list_of(fidelity_names),
                 "closed: by formula; flow: every transfer on its links, sharing them");
  options.choice("--routing", routing, list_of(link_routing_names),
                 "At flow level, between equally short paths: ecmp picks one by hash, adaptive uses all");
}

CollectiveOptions MachineFlags::collective_options() const {
  return {.fidelity = named<Fidelity>(fidelity_names, fidelity),
          .routing = named<LinkRouting>(link_routing_names, routing)};
}

CollectiveModel MachineFlags::model(const Library& library, const CollectiveOptions& options) const {
  const int given = !cluster.empty() + !node.empty() + !topology.empty();
  if (given != 1) {
    throw InputError({.source = "--cluster, --node, --topology",
                      .value = given == 0 ? "none of them" : "more than one",
                      .expected = "one machine to run on"});
  }
  if (!topology.empty()) return CollectiveModel(topology_from(topology), topology, domain, options);
  const HardwareCatalogue hardware = library.hardware();
  if (!node.empty()) return CollectiveModel(cluster_of(hardware.node(node)), options);
  Cluster whole = hardware.cluster(cluster);
  if (nodes > 0) whole = cluster_with_nodes(std::move(whole), static_cast<int>(nodes));
  return CollectiveModel(std::move(whole), options);
}

std::optional<Device> MachineFlags::device(const Library& library) const {
  if (!cluster.empty()) return library.hardware().cluster(cluster).node.device;
  if (!node.empty()) return library.hardware().node(node).device;
  return std::nullopt;
}

}  // namespace foretoken
