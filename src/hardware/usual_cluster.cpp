#include "hardware/usual_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/counted.h"

namespace foretoken {

std::string rate_words(BytesPerSecond rate) {
  return fmt::format("{:.3g} GB/s", rate.value() / 1e9);
}

NetworkCards assumed_cards(int devices) {
  return {.count = {.value = std::max(1, devices / 4), .source = "assumed", .assumed = true},
          .bandwidth = {.value = BytesPerSecond(25e9), .source = "assumed", .assumed = true}};
}

Cluster usual_cluster(const HardwareCatalogue& catalogue, Node node) {
  const bool has_cards = node.network_cards.has_value();
  for (const std::string& name : catalogue.cluster_names()) {
    Cluster cluster = catalogue.cluster(name);
    if (!cluster.is_usual || cluster.node.name != node.name) continue;
    if (has_cards && node.network_cards->bandwidth.value != cluster.node.network_cards->bandwidth.value) {
      cluster.fabric.nic_bandwidth = node.network_cards->bandwidth;
    }
    if (!has_cards) node.network_cards = cluster.node.network_cards;
    cluster.node = std::move(node);
    return cluster;
  }
  if (!has_cards) node.network_cards = assumed_cards(node.device_count);
  Cluster cluster{.name = fmt::format("a fat tree of {}", node.name), .title = {}, .aliases = {}, .note = {}};
  const BytesPerSecond rate = node.network_cards->bandwidth.value;
  cluster.fabric = {
      .kind = ClusterFabricKind::fat_tree,
      .technology = fmt::format("{} of {:.3g} Gbit/s", counted(node.network_cards->count.value, "network card"),
                                rate.value() * 8e-9),
      .nic_bandwidth = {.value = rate, .source = "assumed", .assumed = true},
      .oversubscription = {.value = 1, .source = "assumed", .assumed = true},
      .nodes_per_leaf = {.value = 16, .source = "assumed", .assumed = true}};
  cluster.node = std::move(node);
  return cluster;
}

std::string assumed_cluster_text(const Cluster& cluster, int64_t ranks) {
  const Node& node = cluster.node;
  const std::optional<BytesPerSecond> rate = network_bandwidth_per_device(node);
  const double cards_of_device = node.network_cards->count.value / static_cast<double>(node.device_count);
  return fmt::format(
      "{} ranks span {} of {}. No cluster was given, so foretoken assumes {} ({} between nodes, {} per GPU). "
      "Give {{cluster}} to change this.",
      ranks, counted((ranks + node.device_count - 1) / node.device_count, "node"), counted(node.device_count, "GPU"),
      cluster.name, cluster.fabric.technology,
      rate_words(std::min(*rate, cluster.fabric.nic_bandwidth.value * cards_of_device)));
}

}  // namespace foretoken
