// In-switch: the switch adds what the ranks send and copies the sum to all. (NVLink SHARP: Ishii and Wells, "The
// NVLink-network switch", Hot Chips 2022; Graham et al., "Scalable hierarchical aggregation protocol (SHArP)", 2016.)
#include "network/algorithms/common.h"
#include "network/algorithms/list.h"

namespace foretoken {
namespace {

std::string unsuitable(CollectiveKind kind, const GroupShape& shape) {
  if (!is_all_reduce(kind) && kind != CollectiveKind::broadcast && kind != CollectiveKind::reduce)
    return not_for("in-switch", kind);
  if (shape.nodes > 1) return "in-switch works inside one switched domain";
  if (shape.mesh) return "in-switch needs a switch, not links between pairs";
  return {};
}

// Up to the switch and down again; who is next on the list stands for "all".
BlockPlan plan(CollectiveKind kind, const GroupLayout& layout, int32_t root) {
  BlockPlan plan{.blocks = 1};
  const auto members = static_cast<int32_t>(layout.members());
  if (members < 2) return plan;
  BlockStage stage{
      .messages = is_all_reduce(kind) ? 2 : 1, .reduces = kind != CollectiveKind::broadcast, .in_switch = true};
  for (int32_t from = 0; from < members; ++from) {
    const int32_t to = (from + 1) % members;
    if (kind == CollectiveKind::broadcast && to == root) continue;
    if (kind == CollectiveKind::reduce && from == root) continue;
    stage.transfers.push_back({.from = from, .to = to, .first = 0, .count = 1});
  }
  plan.stages.push_back(std::move(stage));
  return plan;
}

std::vector<StageLoad> loads(CollectiveKind kind, const GroupShape&) {
  return {{.messages = is_all_reduce(kind) ? 2.0 : 1.0, .device = 1, .pair = 1, .in_switch = true}};
}

}  // namespace

CollectiveAlgorithm in_switch_algorithm() {
  return {.name = "in_switch",
          .summary = "the switch adds and copies (NVLS, SHARP): every byte goes up once and comes down once",
          .unsuitable = unsuitable,
          .plan = plan,
          .loads = loads};
}

}  // namespace foretoken
