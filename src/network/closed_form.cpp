#include "network/closed_form.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"

namespace foretoken {
namespace {

Seconds latency_of(Reach reach, const GroupRates& rates) {
  switch (reach) {
    case Reach::node:
      return rates.near_latency;
    case Reach::leaf:
      return rates.leaf_latency;
    case Reach::spine:
      return rates.spine_latency;
  }
  throw InternalError("every reach has a latency");
}

// On what a stage spends the most time: links, or the posting of its messages.
struct Busiest {
  Seconds time;
  std::string_view name;

  void consider(double bytes, BytesPerSecond rate, std::string_view links) {
    if (!(bytes > 0)) return;
    ensure(rate.value() > 0, "links that a collective uses have a rate");
    consider(Bytes(bytes) / rate, links);
  }
  void consider(Seconds needed, std::string_view what) {
    if (needed <= time) return;
    time = needed;
    name = what;
  }
};

}  // namespace

GroupRates group_rates(const Cluster& cluster, const GroupShape& shape) {
  const Node& node = cluster.node;
  GroupRates rates{.device = node.fabric.bandwidth.value,
                   .near_latency = node.fabric.latency ? node.fabric.latency->value : Seconds(0)};
  if (shape.mesh) rates.pair = pair_bandwidth(node);
  // Rings that visit neighbors use all links of a corner; two devices share one.
  if (has_neighbors_alone(node.fabric) && shape.most_per_node == 2) rates.device = pair_bandwidth(node);
  if (shape.nodes == 1) return rates;
  ensure(node.network_cards.has_value(), "a cluster's node has network cards");
  const ClusterFabric& fabric = cluster.fabric;
  const BytesPerSecond card = card_bandwidth(cluster);
  const int cards = node.network_cards->count.value;
  const int cards_of_device = std::max(1, cards / devices_per_node(cluster));
  rates.whole_card = card * cards_of_device;
  rates.card = rates.whole_card / static_cast<double>(shape.most_per_card);
  // A leaf switch has as many links below as cards hang off it, and fewer above. On rails, each card of a device has a
  // leaf switch of its own.
  const double ports = shape.rails ? fabric.nodes_per_leaf.value : 1.0 * fabric.nodes_per_leaf.value * cards;
  const int leaves_of_device = shape.rails ? cards_of_device : 1;
  rates.spine =
      card * (leaves_of_device * ports / fabric.oversubscription.value / static_cast<double>(shape.most_per_leaf));
  const Seconds latency = fabric.latency ? fabric.latency->value : Seconds(0);
  rates.leaf_latency = latency;
  rates.spine_latency = 2 * latency;
  return rates;
}

ClosedForm closed_form(std::span<const StageLoad> loads, double bytes, const GroupRates& rates,
                       const MessageCosts& costs) {
  ClosedForm result;
  if (!loads.empty()) result.start = costs.start;
  Seconds longest;
  for (const StageLoad& load : loads) {
    const Seconds message = load.reach == Reach::node ? costs.near_message : costs.far_message;
    result.latency += load.messages * (message + latency_of(load.reach, rates)) +
                      load.near_messages * (costs.near_message + rates.near_latency);
    Busiest busiest;
    const double near = bytes * costs.near_wire, far = bytes * costs.far_wire;
    if (rates.pair.value() > 0) {
      busiest.consider(load.pair * near, rates.pair, "links between pairs");
    } else {
      busiest.consider(load.device * near, rates.device, "links of the node");
    }
    busiest.consider(load.card * far, load.alone ? rates.whole_card : rates.card, "network cards");
    busiest.consider(load.spine * far, rates.spine, "spine");
    busiest.consider(load.posts * costs.post, "posting of messages");  // while earlier ones move
    result.wire += busiest.time;
    if (busiest.time > longest) {
      longest = busiest.time;
      result.busiest = busiest.name;
    }
  }
  return result;
}

ClosedForm closed_form(const RoutedPlan& plan, const Topology& topology) {
  ClosedForm result{.start = plan.start};
  Seconds longest;
  for (const RoutedStage& stage : plan.stages) {
    result.latency += stage.latency;
    Seconds slowest;
    for (const LinkLoad& load : stage.loads) {
      const Link& link = topology.link(load.link);
      const Seconds needed = Bytes(stage.largest_transfer * load.weight) / link.bandwidth;
      if (needed <= slowest) continue;
      slowest = needed;
      if (slowest > longest) result.busiest = fmt::format("{} to {}", topology.name(link.from), topology.name(link.to));
    }
    result.wire += slowest;
    longest = std::max(longest, slowest);
  }
  return result;
}

}  // namespace foretoken
