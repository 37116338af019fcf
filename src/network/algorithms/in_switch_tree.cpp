// In-switch tree: the switch of each node adds what its members send, two binary trees add the sums of the nodes, each
// member of a node for its share of the buffer, and the switches copy the result. (NCCL 2.18: NVLSTree.)
#include "network/algorithms/common.h"
#include "network/algorithms/double_tree.h"
#include "network/algorithms/list.h"

namespace foretoken {
namespace in_switch_tree {
namespace {

std::string unsuitable(CollectiveKind kind, const GroupShape& shape) {
  if (!is_all_reduce(kind)) return not_for("an in-switch tree", kind);
  if (shape.nodes == 1) return "an in-switch tree needs several nodes: use in_switch inside one node";
  if (shape.fewest_per_node < 2) return "an in-switch tree needs at least two members in each node";
  if (shape.mesh) return "an in-switch tree needs a switch in each node, not links between pairs";
  return {};
}

// Every byte goes up to the switch of the node and comes down once in both stages together, as in in_switch.
void add_inside_nodes(const GroupLayout& layout, int64_t channels, BlockStage& stage) {
  for (int64_t node = 0; node < layout.nodes(); ++node) {
    const int64_t first = layout.first_places[static_cast<size_t>(node)], size = layout.members_of(node);
    for (int64_t i = 0; i < size; ++i) {
      stage.transfers.push_back({.from = static_cast<int32_t>(first + i),
                                 .to = static_cast<int32_t>(first + (i + 1) % size),
                                 .first = 0,
                                 .count = channels + 1,
                                 .in_switch = true});
    }
  }
}

BlockPlan plan(CollectiveKind, const GroupLayout& layout, int32_t) {
  const int64_t channels = layout.fewest_per_node();
  const int64_t depth = ceil_log2(layout.nodes());
  BlockStage up{.messages = depth, .near_messages = 1, .reduces = true};
  BlockStage down{.messages = depth, .near_messages = 1};
  add_inside_nodes(layout, channels, up);
  add_inside_nodes(layout, channels, down);
  const std::vector<TreeEdge> edges = double_tree(layout.nodes(), TreeRoots::own);
  for (int64_t channel = 0; channel < channels; ++channel) {
    const auto member_of = [&](int64_t node) {
      return static_cast<int32_t>(layout.first_places[static_cast<size_t>(node)] + channel);
    };
    for (const TreeEdge& edge : edges) {
      const int32_t child = member_of(edge.child), parent = member_of(edge.parent);
      const int64_t block = channel * 2 + edge.half;
      up.transfers.push_back({.from = child, .to = parent, .first = block, .count = 1});
      down.transfers.push_back({.from = parent, .to = child, .first = block, .count = 1});
    }
  }
  return {.blocks = 2 * channels, .stages = {std::move(up), std::move(down)}};
}

std::vector<StageLoad> loads(CollectiveKind, const GroupShape& shape) {
  const auto channels = static_cast<double>(shape.fewest_per_node);
  StageLoad load{.messages = static_cast<double>(ceil_log2(shape.nodes)),
                 .near_messages = 1,
                 .reach = reach_along_rails(shape),
                 .device = (1 + 1 / channels) / 2,
                 .card = double_tree_load(shape.nodes, TreeRoots::own) / channels};
  load.spine = spine_load(shape, load, short_edges_part(shape, TreeRoots::own));
  return {load, load};
}

bool nccl_considers(CollectiveKind kind, const GroupShape& shape) {
  return is_all_reduce(kind) && shape.nodes > 1;
}

}  // namespace
}  // namespace in_switch_tree

CollectiveAlgorithm in_switch_tree_algorithm() {
  return {.name = "in_switch_tree",
          .summary = "switches add and copy inside each node, two binary trees connect the nodes (NVLSTree)",
          .unsuitable = in_switch_tree::unsuitable,
          .plan = in_switch_tree::plan,
          .loads = in_switch_tree::loads,
          .nccl_considers = in_switch_tree::nccl_considers,
          .steps = StepKind::in_switch_tree,
          .simple_only = true,
          .needs_reducing_switch = true};
}

}  // namespace foretoken
