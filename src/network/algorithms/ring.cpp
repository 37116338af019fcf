// Ring: each rank passes what it gets on to the next. (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for
// clusters of workstations", 2009; NCCL's rings.)
#include <numeric>

#include "network/algorithms/common.h"
#include "network/algorithms/list.h"

namespace foretoken {
namespace ring {
namespace {

// Several rings share the buffer, so that they leave each node through different devices and cards, or use different
// links of a mesh.
//
// Across nodes, ring c enters a node of even number at its member c; in nodes of odd number it goes the other way
// round. So every hop between nodes stays on one rail (but the last of an odd number of nodes), and every member is the
// exit of one ring.
std::vector<int32_t> ring_through_nodes(const GroupLayout& layout, int64_t ring) {
  std::vector<int32_t> order;
  for (int64_t node = 0; node < layout.nodes(); ++node) {
    const int64_t size = layout.members_of(node);
    for (int64_t i = 0; i < size; ++i) {
      const int64_t step = member_on_way(node % 2 == 0 ? i : size - 1 - i, size, layout.mesh);
      order.push_back(static_cast<int32_t>(layout.first_places[node] + (ring + step) % size));
    }
  }
  return order;
}

// In a mesh, steps that have no factor in common with the ranks.
std::vector<int64_t> mesh_steps(int64_t ranks) {
  std::vector<int64_t> steps;
  for (int64_t step = 1; step < ranks; ++step) {
    if (std::gcd(step, ranks) == 1) steps.push_back(step);
  }
  return steps;
}

std::vector<std::vector<int32_t>> ring_orders(const GroupLayout& layout) {
  std::vector<std::vector<int32_t>> orders;
  if (layout.nodes() > 1) {
    for (int64_t ring = 0; ring < layout.fewest_per_node(); ++ring) orders.push_back(ring_through_nodes(layout, ring));
    return orders;
  }
  const int64_t members = layout.members();
  for (const int64_t step : layout.mesh&& members >= 3 ? mesh_steps(members) : std::vector<int64_t>{1}) {
    std::vector<int32_t>& order = orders.emplace_back();
    for (int64_t i = 0; i < members; ++i) order.push_back(static_cast<int32_t>(i * step % members));
  }
  return orders;
}

struct Hops {
  int64_t far = 0, near = 0;
};

// One pass around: n-1 hops, of which nodes - 1 leave a node.
Hops hops_of_a_pass(int64_t ranks, int64_t nodes) {
  if (nodes == 1) return {.far = ranks - 1};
  return {.far = nodes - 1, .near = ranks - nodes};
}

std::string unsuitable(CollectiveKind kind, const GroupShape&) {
  switch (kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
    case CollectiveKind::barrier:
      return {};
    default:
      return not_for("ring", kind);
  }
}

// Blocks of ring c are c, c + rings, ...; the one of place p is p * rings + c.
BlockStage pass_around(const std::vector<std::vector<int32_t>>& orders, bool reduces, const Hops& hops) {
  BlockStage stage{.messages = hops.far, .near_messages = hops.near, .reduces = reduces};
  const auto rings = static_cast<int64_t>(orders.size());
  for (int64_t ring = 0; ring < rings; ++ring) {
    const std::vector<int32_t>& order = orders[ring];
    for (size_t i = 0; i < order.size(); ++i) {
      const int32_t from = order[i], to = order[(i + 1) % order.size()];
      // A sum ends at its owner, who sends it no further; a gathered block starts at its owner, to whom none sends it.
      const int64_t left_out = reduces ? from : to;
      stage.transfers.push_back({.from = from,
                                 .to = to,
                                 .first = (left_out + 1) * rings + ring,
                                 .count = static_cast<int64_t>(order.size()) - 1,
                                 .step = rings});
    }
  }
  return stage;
}

// A chain from (or, reducing, to) the root: the ring without the link that closes it there.
BlockStage chain(const std::vector<std::vector<int32_t>>& orders, int32_t root, bool reduces, const Hops& hops) {
  BlockStage stage{.messages = hops.far, .near_messages = hops.near, .reduces = reduces};
  const auto rings = static_cast<int64_t>(orders.size());
  for (int64_t ring = 0; ring < rings; ++ring) {
    const std::vector<int32_t>& order = orders[ring];
    for (size_t i = 0; i < order.size(); ++i) {
      const int32_t from = order[i], to = order[(i + 1) % order.size()];
      if ((reduces ? from : to) == root) continue;
      stage.transfers.push_back({.from = from, .to = to, .first = ring, .count = 1});
    }
  }
  return stage;
}

BlockPlan plan(CollectiveKind kind, const GroupLayout& layout, int32_t root) {
  const std::vector<std::vector<int32_t>> orders = ring_orders(layout);
  const auto rings = static_cast<int64_t>(orders.size());
  const Hops hops = hops_of_a_pass(layout.members(), layout.nodes());
  if (kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce) {
    return {.blocks = rings, .stages = {chain(orders, root, kind == CollectiveKind::reduce, hops)}};
  }
  BlockPlan plan{.blocks = layout.members() * rings};
  if (scatters(kind)) plan.stages.push_back(pass_around(orders, true, hops));
  if (gathers(kind)) plan.stages.push_back(pass_around(orders, false, hops));
  return plan;
}

std::vector<StageLoad> loads(CollectiveKind kind, const GroupShape& shape) {
  const auto ranks = static_cast<double>(shape.ranks);
  const bool is_chain = kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce;
  const double edge = is_chain ? 1 : (ranks - 1) / ranks;
  const Hops hops = hops_of_a_pass(shape.ranks, shape.nodes);
  StageLoad load{.messages = static_cast<double>(hops.far), .near_messages = static_cast<double>(hops.near)};
  if (shape.nodes == 1) {
    const size_t rings = shape.mesh && shape.ranks >= 3 ? mesh_steps(shape.ranks).size() : 1;
    load.device = edge;
    load.pair = edge / static_cast<double>(rings);
  } else {
    const auto rings = static_cast<double>(shape.fewest_per_node);
    // A member that is the exit of a ring sends that ring's share through its card.
    const double inside = shape.is_even() ? edge * (rings - 1) / rings : edge;
    load.device = shape.most_per_node == 1 ? 0 : inside;
    load.pair = shape.most_per_node == 1 ? 0 : edge / rings * channels_per_link(shape);
    load.card = edge / rings;
    // An odd number of nodes closes its rings across rails.
    const bool closes_across = shape.nodes % 2 == 1 && shape.most_per_node > 1;
    load.reach = closes_across ? reach_anywhere(shape) : reach_along_rails(shape);
    // One node of each leaf group sends to the next group.
    load.spine = spine_load(shape, load, 1 / static_cast<double>(shape.nodes_per_leaf));
  }
  std::vector<StageLoad> result(is_all_reduce(kind) ? 2 : 1, load);
  return result;
}

bool nccl_considers(CollectiveKind, const GroupShape&) {
  return true;
}

}  // namespace
}  // namespace ring

CollectiveAlgorithm ring_algorithm() {
  return {.name = "ring",
          .summary = "each rank passes on to the next: least bytes, latency grows with the ranks",
          .unsuitable = ring::unsuitable,
          .plan = ring::plan,
          .loads = ring::loads,
          .nccl_considers = ring::nccl_considers};
}

}  // namespace foretoken
