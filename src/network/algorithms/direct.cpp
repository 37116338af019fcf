// Direct: every rank sends to every other what that one needs, at once. All-to-all and point-to-point are this.
#include "network/algorithms/common.h"
#include "network/algorithms/list.h"

namespace foretoken {
namespace direct {
namespace {

std::string unsuitable(CollectiveKind, const GroupShape&) {
  return {};
}

// Members of other nodes, each of which gets a message of its own.
int64_t posts_of(int64_t members, int64_t fewest_per_node, int64_t nodes) {
  return nodes == 1 ? 0 : members - fewest_per_node;
}

// From each member to each other: the block that `block_of` gives.
template <class BlockOf>
BlockStage all_pairs(const GroupLayout& layout, bool reduces, BlockOf block_of) {
  const int64_t members = layout.members();
  check_pairs_fit("direct", members);
  BlockStage stage{.posts = posts_of(members, layout.fewest_per_node(), layout.nodes()), .reduces = reduces};
  for (int32_t from = 0; from < members; ++from) {
    for (int32_t to = 0; to < members; ++to) {
      if (from != to) stage.transfers.push_back({.from = from, .to = to, .first = block_of(from, to), .count = 1});
    }
  }
  return stage;
}

// Between the root and each other member: the whole buffer, or that member's own block.
BlockStage with_root(int64_t members, int32_t root, bool to_root, bool whole, bool reduces) {
  BlockStage stage{.reduces = reduces};
  for (int32_t place = 0; place < members; ++place) {
    if (place == root) continue;
    stage.transfers.push_back(
        {.from = to_root ? place : root, .to = to_root ? root : place, .first = whole ? 0 : place, .count = 1});
  }
  return stage;
}

BlockPlan plan(CollectiveKind kind, const GroupLayout& layout, int32_t root) {
  const int64_t members = layout.members();
  const auto owner_gets = [](int32_t, int32_t to) -> int64_t { return to; };
  const auto owner_gives = [](int32_t from, int32_t) -> int64_t { return from; };
  switch (kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::barrier:
      return {.blocks = members,
              .stages = {all_pairs(layout, true, owner_gets), all_pairs(layout, false, owner_gives)}};
    case CollectiveKind::reduce_scatter:
      return {.blocks = members, .stages = {all_pairs(layout, true, owner_gets)}};
    case CollectiveKind::all_gather:
      return {.blocks = members, .stages = {all_pairs(layout, false, owner_gives)}};
    case CollectiveKind::all_to_all:
      return {
          .blocks = members * members,
          .stages = {all_pairs(layout, false, [members](int32_t from, int32_t to) { return from * members + to; })}};
    case CollectiveKind::broadcast:
      return {.blocks = 1, .stages = {with_root(members, root, false, true, false)}};
    case CollectiveKind::reduce:
      return {.blocks = 1, .stages = {with_root(members, root, true, true, true)}};
    case CollectiveKind::gather:
      return {.blocks = members, .stages = {with_root(members, root, true, false, false)}};
    case CollectiveKind::scatter:
      return {.blocks = members, .stages = {with_root(members, root, false, false, false)}};
    case CollectiveKind::send_recv:
      break;
  }
  const auto next = static_cast<int32_t>((root + 1) % members);
  if (next == root) return {};
  return {.blocks = 1, .stages = {{.transfers = {{.from = root, .to = next, .first = 0, .count = 1}}}}};
}

bool has_root(CollectiveKind kind) {
  return kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce || kind == CollectiveKind::gather ||
         kind == CollectiveKind::scatter;
}

std::vector<StageLoad> loads(CollectiveKind kind, const GroupShape& shape) {
  const auto ranks = static_cast<double>(shape.ranks);
  const auto near = static_cast<double>(shape.most_per_node - 1);
  // Seen from the node with the fewest members, the most lie elsewhere.
  const auto far = static_cast<double>(shape.ranks - shape.fewest_per_node);
  StageLoad load{.reach = reach_anywhere(shape)};
  if (kind == CollectiveKind::send_recv) {
    const bool same_node = shape.nodes == 1;
    if (!same_node) load.reach = shape.most_per_leaf == shape.ranks ? Reach::leaf : Reach::spine;
    load.device = load.pair = same_node ? 1 : 0;
    load.card = same_node ? 0 : 1;
    load.alone = true;
    if (load.reach == Reach::spine) load.spine = 1 / static_cast<double>(shape.most_per_leaf);
    return {load};
  }
  const bool whole = kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce;
  const double piece = whole ? 1 : 1 / ranks;
  load.device = near * piece;
  load.pair = shape.most_per_node > 1 ? piece : 0;
  load.card = far * piece;
  if (!has_root(kind)) load.posts = static_cast<double>(posts_of(shape.ranks, shape.fewest_per_node, shape.nodes));
  load.alone = has_root(kind);
  if (load.reach == Reach::spine) {
    // Those of other nodes below the same leaf switch are reached without the spine.
    const int64_t own = (shape.most_per_leaf + shape.nodes_per_leaf - 1) / shape.nodes_per_leaf;
    const auto below_leaf = static_cast<double>(shape.most_per_leaf - own);
    load.spine = std::max(0.0, far - below_leaf) * piece;
    if (load.alone) load.spine /= static_cast<double>(shape.most_per_leaf);
  }
  if (shape.nodes == 1) load.card = 0;
  return std::vector<StageLoad>(is_all_reduce(kind) ? 2 : 1, load);
}

// As sends and receives, where it has no collective of its own.
bool nccl_considers(CollectiveKind kind, const GroupShape&) {
  switch (kind) {
    case CollectiveKind::all_to_all:
    case CollectiveKind::gather:
    case CollectiveKind::scatter:
    case CollectiveKind::send_recv:
      return true;
    default:
      return false;
  }
}

}  // namespace
}  // namespace direct

CollectiveAlgorithm direct_algorithm() {
  return {.name = "direct",
          .summary = "every rank sends to every other at once: one step",
          .unsuitable = direct::unsuitable,
          .plan = direct::plan,
          .loads = direct::loads,
          .nccl_considers = direct::nccl_considers,
          .sends_and_receives = true};
}

}  // namespace foretoken
