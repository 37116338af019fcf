// Hierarchical: directly inside each node, in rings along the rails across nodes. (Cho et al., "BlueConnect:
// decomposing all-reduce for deep learning on heterogeneous network hierarchy", 2019; for all-to-all NCCL's PXN.)
#include "base/error.h"
#include "network/algorithms/common.h"
#include "network/algorithms/list.h"

namespace foretoken {
namespace hierarchical {
namespace {

// Member m of node n has place n * size + m.
struct Grid {
  explicit Grid(const GroupLayout& layout) : nodes(layout.nodes()), size(layout.most_per_node()) {
    ensure(layout.fewest_per_node() == size, "a hierarchical algorithm runs on nodes of equal size");
  }
  int64_t members() const { return nodes * size; }
  int32_t place(int64_t node, int64_t member) const { return static_cast<int32_t>(node * size + member); }

  int64_t nodes, size;
};

// Inside every node, from each member to each other: the blocks of the members of one number, over all nodes.
BlockStage inside(const Grid& grid, bool reduces) {
  BlockStage stage{.reduces = reduces};
  for (int64_t node = 0; node < grid.nodes; ++node) {
    for (int64_t from = 0; from < grid.size; ++from) {
      for (int64_t to = 0; to < grid.size; ++to) {
        if (from == to) continue;
        stage.transfers.push_back({.from = grid.place(node, from),
                                   .to = grid.place(node, to),
                                   .first = reduces ? to : from,
                                   .count = grid.nodes,
                                   .step = grid.size});
      }
    }
  }
  return stage;
}

// Along every rail, a ring over the blocks of its own members.
BlockStage along_rails(const Grid& grid, bool reduces) {
  BlockStage stage{.messages = grid.nodes - 1, .reduces = reduces};
  for (int64_t member = 0; member < grid.size; ++member) {
    for (int64_t node = 0; node < grid.nodes; ++node) {
      const int64_t next = (node + 1) % grid.nodes;
      const int64_t left_out = reduces ? node : next;
      stage.transfers.push_back({.from = grid.place(node, member),
                                 .to = grid.place(next, member),
                                 .first = grid.place(left_out + 1, member),
                                 .count = grid.nodes - 1,
                                 .step = grid.size});
    }
  }
  return stage;
}

// First to the member of one's own node on the rail of the one it is for, then along the rail.
std::vector<BlockStage> all_to_all(const Grid& grid) {
  check_pairs_fit("hierarchical", grid.members());
  BlockStage near, far;
  const int64_t members = grid.members();
  for (int64_t node = 0; node < grid.nodes; ++node) {
    for (int64_t rail = 0; rail < grid.size; ++rail) {
      for (int64_t member = 0; member < grid.size; ++member) {
        if (member == rail) continue;
        near.transfers.push_back({.from = grid.place(node, member),
                                  .to = grid.place(node, rail),
                                  .first = grid.place(node, member) * members + rail,
                                  .count = grid.nodes,
                                  .step = grid.size});
      }
      for (int64_t to = 0; to < grid.nodes; ++to) {
        if (to == node) continue;
        far.transfers.push_back({.from = grid.place(node, rail),
                                 .to = grid.place(to, rail),
                                 .first = grid.place(node, 0) * members + grid.place(to, rail),
                                 .count = grid.size,
                                 .step = members});
      }
    }
  }
  return {std::move(near), std::move(far)};
}

std::string unsuitable(CollectiveKind kind, const GroupShape& shape) {
  if (!scatters(kind) && !gathers(kind) && kind != CollectiveKind::all_to_all) return not_for("hierarchical", kind);
  if (shape.nodes == 1) return "hierarchical needs several nodes";
  if (shape.most_per_node == 1) return "hierarchical needs several ranks in a node";
  if (!shape.is_even()) return "hierarchical needs as many ranks in every node";
  return {};
}

BlockPlan plan(CollectiveKind kind, const GroupLayout& layout, int32_t) {
  const Grid grid(layout);
  if (kind == CollectiveKind::all_to_all)
    return {.blocks = grid.members() * grid.members(), .stages = all_to_all(grid)};
  BlockPlan plan{.blocks = grid.members()};
  if (scatters(kind)) {
    plan.stages.push_back(inside(grid, true));
    plan.stages.push_back(along_rails(grid, true));
  }
  if (gathers(kind)) {
    plan.stages.push_back(along_rails(grid, false));
    plan.stages.push_back(inside(grid, false));
  }
  return plan;
}

std::vector<StageLoad> loads(CollectiveKind kind, const GroupShape& shape) {
  const auto nodes = static_cast<double>(shape.nodes), places = static_cast<double>(shape.most_per_node);
  const auto leaf_nodes = static_cast<double>(shape.nodes_per_leaf);
  const StageLoad near{.device = (places - 1) / places, .pair = 1 / places};
  StageLoad far{.reach = reach_along_rails(shape)};
  if (kind == CollectiveKind::all_to_all) {
    far.card = (nodes - 1) / nodes;
    far.spine = spine_load(shape, far, (nodes - leaf_nodes) / (nodes - 1));
    return {near, far};
  }
  far.messages = nodes - 1;
  far.card = (nodes - 1) / nodes / places;
  // Of a ring, one node of each leaf group sends to the next group.
  far.spine = spine_load(shape, far, 1 / leaf_nodes);
  if (kind == CollectiveKind::reduce_scatter) return {near, far};
  if (kind == CollectiveKind::all_gather) return {far, near};
  return {near, far, far, near};
}

}  // namespace
}  // namespace hierarchical

CollectiveAlgorithm hierarchical_algorithm() {
  return {.name = "hierarchical",
          .summary = "inside the nodes, along the rails, inside the nodes: each card carries its own share",
          .unsuitable = hierarchical::unsuitable,
          .plan = hierarchical::plan,
          .loads = hierarchical::loads,
          .nccl_considers = never_in_nccl};
}

}  // namespace foretoken
