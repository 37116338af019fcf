#include "app/cli/flags/machine_flags.h"

#include <algorithm>

#include "app/cli/flags/choice_names.h"
#include "base/error.h"
#include "network/topology/topology_file.h"

namespace foretoken {
namespace {

// A node's name behind --cluster is a slip of the flag, not of the name.
void check_is_no_node(const std::string& cluster, const HardwareCatalogue& hardware) {
  const auto holds = [&](const std::vector<std::string>& names) {
    return std::any_of(names.begin(), names.end(),
                       [&](const std::string& name) { return comparable_name(name) == comparable_name(cluster); });
  };
  if (holds(hardware.cluster_names()) || !holds(hardware.node_names())) return;
  throw InputError({.source = "--cluster",
                    .value = cluster + ", which is a node",
                    .expected = "a cluster (`foretoken devices` lists them)",
                    .suggestion = "--node " + cluster});
}

}  // namespace

void MachineFlags::declare_machine(Options& options) {
  options.heading("Machine (give one)");
  options.text("--cluster", cluster,
               "Cluster to run on: a built-in name (`foretoken devices` lists them) or a cluster file");
  options.text("--node", node, "Single node to run on: a built-in name or a node file");
  options.text("--topology", topology, "Links alone: a description such as switch:8@450GB/s,500ns, or a topology file");
  options.integer("--nodes", nodes, {.least = 0, .most = most_nodes},
                  "With --cluster: number of nodes to use; 0 = all nodes of the cluster");
  options.integer("--domain", domain, {.least = 0},
                  "With --topology: number of devices in one fast domain, for hierarchical algorithms; 0 = all");
}

void MachineFlags::declare_fidelity(Options& options, const std::string& name) {
  options.choice(
      name, fidelity, names_of(fidelity_names),
      "How the network is modeled. closed = formulas; flow = simulate every transfer and how transfers share links");
  options.choice(
      "--routing", routing, names_of(link_routing_names),
      "With flow simulation: how to choose among equally short paths. ecmp = one path by hash; adaptive = all paths");
}

CollectiveOptions MachineFlags::collective_options() const {
  return {.fidelity = named<Fidelity>(fidelity_names, fidelity),
          .routing = named<LinkRouting>(link_routing_names, routing)};
}

CollectiveMachine MachineFlags::machine(const Library& library, CollectiveOptions options,
                                        const std::function<std::vector<KnownTime>(int64_t)>& known,
                                        int64_t least_devices) const {
  const int given = !cluster.empty() + !node.empty() + !topology.empty();
  if (given != 1) {
    throw InputError({.source = "--cluster, --node, --topology",
                      .value = given == 0 ? "none of them" : "more than one",
                      .expected = "exactly one machine to run on"});
  }
  if (!topology.empty()) {
    return {.measured = nullptr, .model = {topology_from(topology), topology, domain, options}, .device = {}};
  }
  if (!cluster.empty()) check_is_no_node(cluster, library.hardware());
  Cluster whole = node.empty() ? library.hardware().cluster(cluster) : cluster_of(library.hardware().node(node));
  if (nodes > 0 && node.empty()) whole = cluster_with_nodes(std::move(whole), static_cast<int>(nodes));
  if (nodes == 0 && node.empty() && least_devices > total_devices(whole)) {
    const int64_t each = whole.node.device_count;
    const int64_t needed = (least_devices + each - 1) / each;
    if (needed <= most_nodes) whole = cluster_with_nodes(std::move(whole), static_cast<int>(needed));
  }
  std::vector<KnownTime> times = known ? known(total_devices(whole)) : std::vector<KnownTime>();
  return collective_machine(library, std::move(whole), options, std::move(times));
}

}  // namespace foretoken
