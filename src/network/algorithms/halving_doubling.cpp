// Recursive halving and doubling: exchanges with partners at distance 1, 2, 4, ..., with half, a quarter, ... of the
// buffer; gathering walks back. (Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations
// in MPICH", 2005.) Ranks beyond a power of two fold into a partner first and are served by it at the end.
#include <algorithm>
#include <bit>

#include "network/algorithms/common.h"
#include "network/algorithms/list.h"

namespace foretoken {
namespace halving_doubling {
namespace {

// Places (2i, 2i + 1) for i < extra act as one.
struct FoldedPlaces {
  explicit FoldedPlaces(int64_t count)
      : members(count),
        power(static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(count)))),
        extra(count - power) {}

  int32_t active(int64_t folded) const { return static_cast<int32_t>(folded < extra ? 2 * folded : folded + extra); }
  int32_t folded_away(int64_t folded) const { return static_cast<int32_t>(2 * folded + 1); }

  int64_t members, power, extra;
};

// Appends the blocks of folded places first, first + step, ... (count of them): in an all-reduce those of the same
// number, else those of the members that each stands for.
void add_blocks(const FoldedPlaces& folded, bool by_member, const BlockTransfer& range,
                std::vector<BlockTransfer>& transfers) {
  if (!by_member) {
    transfers.push_back(range);
    return;
  }
  BlockTransfer part = range;
  const int64_t before_extra = std::max<int64_t>(0, folded.extra - range.first);
  part.count = std::min(range.count, (before_extra + range.step - 1) / range.step);
  if (part.count > 0) {
    part.step = 2 * range.step;
    for (const int64_t member : {0, 1}) {
      part.first = 2 * range.first + member;
      transfers.push_back(part);
    }
  }
  if (part.count == range.count) return;
  transfers.push_back({.from = range.from,
                       .to = range.to,
                       .first = range.first + part.count * range.step + folded.extra,
                       .count = range.count - part.count,
                       .step = range.step});
}

// Before the exchanges the one folded away gives all it has; afterwards it gets all it needs.
BlockStage fold(const FoldedPlaces& folded, CollectiveKind kind, bool in, int64_t blocks) {
  BlockStage stage{.reduces = in && scatters(kind)};
  for (int64_t f = 0; f < folded.extra; ++f) {
    const int32_t active = folded.active(f), away = folded.folded_away(f);
    const bool its_own = in ? kind == CollectiveKind::all_gather : kind == CollectiveKind::reduce_scatter;
    stage.transfers.push_back({.from = in ? away : active,
                               .to = in ? active : away,
                               .first = its_own ? away : 0,
                               .count = its_own ? 1 : blocks});
  }
  return stage;
}

std::string unsuitable(CollectiveKind kind, const GroupShape&) {
  if (scatters(kind) || gathers(kind)) return {};
  return not_for("halving-doubling", kind);
}

BlockPlan plan(CollectiveKind kind, const GroupLayout& layout, int32_t) {
  const FoldedPlaces folded(layout.members());
  const bool by_member = !is_all_reduce(kind);
  BlockPlan plan{.blocks = by_member ? folded.members : folded.power};
  if (folded.extra > 0) plan.stages.push_back(fold(folded, kind, true, plan.blocks));
  const auto exchange = [&](int64_t distance, bool halving) {
    BlockStage stage{.reduces = halving};
    for (int64_t f = 0; f < folded.power; ++f) {
      const int64_t partner = f ^ distance;
      // Halving gives the partner's part away; doubling gives one's own.
      const int64_t part = (halving ? partner : f) % (2 * distance);
      add_blocks(folded, by_member,
                 {.from = folded.active(f),
                  .to = folded.active(partner),
                  .first = part,
                  .count = folded.power / (2 * distance),
                  .step = 2 * distance},
                 stage.transfers);
    }
    plan.stages.push_back(std::move(stage));
  };
  if (scatters(kind)) {
    for (int64_t distance = 1; distance < folded.power; distance *= 2) exchange(distance, true);
  }
  if (gathers(kind)) {
    for (int64_t distance = folded.power / 2; distance >= 1; distance /= 2) exchange(distance, false);
  }
  if (folded.extra > 0) plan.stages.push_back(fold(folded, kind, false, plan.blocks));
  return plan;
}

// A message of `share` between members `distance` apart in the order of nodes.
StageLoad exchange_load(const GroupShape& shape, int64_t distance, double share) {
  const bool stays = shape.nodes == 1 || (shape.is_even() && shape.most_per_node % (2 * distance) == 0);
  if (stays) return {.device = share, .pair = share};
  const bool all_leave = shape.is_even() && distance % shape.most_per_node == 0;
  StageLoad load{.reach = all_leave ? reach_along_rails(shape) : reach_anywhere(shape), .card = share};
  if (!all_leave) load.device = load.pair = share;
  const int64_t leaf = shape.nodes_per_leaf * shape.most_per_node;
  const bool below_leaves = all_leave && is_on_rails(shape) && leaf % (2 * distance) == 0;
  if (load.reach != Reach::spine) return load;
  if (below_leaves) {
    load.reach = Reach::leaf;
  } else {
    load.spine = share;
  }
  return load;
}

std::vector<StageLoad> loads(CollectiveKind kind, const GroupShape& shape) {
  const FoldedPlaces folded(shape.ranks);
  const int64_t power = folded.power;
  const bool folds = folded.extra > 0;
  const double own = 1 / static_cast<double>(shape.ranks);
  // The largest part is that of folded places 0, 2 distance, ..., of which the first ones stand for two members.
  const auto share = [&](int64_t distance) {
    const int64_t places = power / (2 * distance);
    if (is_all_reduce(kind)) return static_cast<double>(places) / static_cast<double>(power);
    const int64_t pairs = (folded.extra + 2 * distance - 1) / (2 * distance);
    return static_cast<double>(places + pairs) * own;
  };
  std::vector<StageLoad> result;
  if (folds) result.push_back(exchange_load(shape, 1, kind == CollectiveKind::all_gather ? own : 1));
  // Where members fold, distances between them are up to twice as long.
  const auto add = [&](int64_t distance) {
    result.push_back(exchange_load(shape, folds ? 2 * distance : distance, share(distance)));
  };
  if (scatters(kind)) {
    for (int64_t distance = 1; distance < power; distance *= 2) add(distance);
  }
  if (gathers(kind)) {
    for (int64_t distance = power / 2; distance >= 1; distance /= 2) add(distance);
  }
  if (folds) result.push_back(exchange_load(shape, 1, kind == CollectiveKind::reduce_scatter ? own : 1));
  return result;
}

}  // namespace
}  // namespace halving_doubling

CollectiveAlgorithm halving_doubling_algorithm() {
  return {.name = "halving_doubling",
          .summary = "exchanges at distances 1, 2, 4, ...: least bytes and few steps, on powers of two",
          .unsuitable = halving_doubling::unsuitable,
          .plan = halving_doubling::plan,
          .loads = halving_doubling::loads,
          .nccl_considers = never_in_nccl};
}

}  // namespace foretoken
