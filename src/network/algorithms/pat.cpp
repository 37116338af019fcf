// PAT, parallel aggregated trees: every block travels down a binomial tree of its own, far hops first while there is
// little to send. (Jeaugey, "PAT: a new algorithm for all-gather and reduce-scatter operations at scale", 2025;
// NCCL 2.23.) Any number of ranks in ceil(log2 n) steps.
#include <algorithm>

#include "network/algorithms/common.h"
#include "network/algorithms/list.h"

namespace foretoken {
namespace pat {
namespace {

std::string unsuitable(CollectiveKind kind, const GroupShape&) {
  if (kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter) return {};
  return not_for("PAT", kind);
}

// In the step of this distance, places that are multiples of twice the distance pass a block on, if anyone is there.
int64_t blocks_in_step(int64_t ranks, int64_t distance) {
  return distance >= ranks ? 0 : (ranks - distance + 2 * distance - 1) / (2 * distance);
}

std::vector<int64_t> distances(CollectiveKind kind, int64_t ranks) {
  std::vector<int64_t> all;
  for (int64_t distance = 1; distance < ranks; distance *= 2) all.push_back(distance);
  if (kind == CollectiveKind::all_gather) std::reverse(all.begin(), all.end());
  return all;
}

BlockPlan plan(CollectiveKind kind, const GroupLayout& layout, int32_t) {
  const int64_t members = layout.members();
  const bool gathers = kind == CollectiveKind::all_gather;
  BlockPlan plan{.blocks = members};
  for (const int64_t distance : distances(kind, members)) {
    BlockStage stage{.reduces = !gathers};
    const int64_t count = blocks_in_step(members, distance);
    for (int64_t place = 0; place < members; ++place) {
      // The blocks of those 0, 2, 4, ... distances back go on from here; sums walk the same trees backwards.
      const int64_t next = (place + distance) % members;
      stage.transfers.push_back({.from = static_cast<int32_t>(gathers ? place : next),
                                 .to = static_cast<int32_t>(gathers ? next : place),
                                 .first = (place - 2 * distance * (count - 1) + members * 2) % members,
                                 .count = count,
                                 .step = 2 * distance});
    }
    plan.stages.push_back(std::move(stage));
  }
  return plan;
}

// Everyone sends `share` to the one `distance` places on.
StageLoad shift_load(const GroupShape& shape, int64_t distance, double share) {
  StageLoad load;
  if (shape.nodes == 1 || distance < shape.most_per_node) load.device = load.pair = share;
  if (shape.nodes == 1) return load;
  const bool along_rails = shape.is_even() && distance % shape.most_per_node == 0;
  load.reach = along_rails ? reach_along_rails(shape) : reach_anywhere(shape);
  // The last `distance` members of a node leave it, and of a leaf group those of its last nodes.
  load.card = share * std::min(1.0, static_cast<double>(distance) / static_cast<double>(shape.most_per_card));
  if (load.reach == Reach::spine) {
    const auto leaf_members = static_cast<double>(shape.nodes_per_leaf * shape.most_per_node);
    const bool crosses_rails = shape.rails && !(along_rails && is_on_rails(shape));
    load.spine = crosses_rails ? share : share * std::min(1.0, static_cast<double>(distance) / leaf_members);
  }
  return load;
}

std::vector<StageLoad> loads(CollectiveKind kind, const GroupShape& shape) {
  std::vector<StageLoad> result;
  for (const int64_t distance : distances(kind, shape.ranks)) {
    const int64_t blocks = blocks_in_step(shape.ranks, distance);
    result.push_back(shift_load(shape, distance, static_cast<double>(blocks) / static_cast<double>(shape.ranks)));
  }
  return result;
}

// With one rank in each node.
bool nccl_considers(CollectiveKind, const GroupShape& shape) {
  return shape.nodes > 1 && shape.most_per_node == 1;
}

}  // namespace
}  // namespace pat

CollectiveAlgorithm pat_algorithm() {
  return {.name = "pat",
          .summary = "binomial trees for all blocks at once, far hops first: few steps for any number of ranks",
          .unsuitable = pat::unsuitable,
          .plan = pat::plan,
          .loads = pat::loads,
          .nccl_considers = pat::nccl_considers,
          .steps = StepKind::pat,
          .simple_only = true};
}

}  // namespace foretoken
