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

// A link carries what is the same for several transfers once (Stage::in_switch).
BlockPlan plan(CollectiveKind kind, const GroupLayout& layout, int32_t root) {
  BlockPlan plan{.blocks = 1};
  const auto members = static_cast<int32_t>(layout.members());
  if (members < 2) return plan;
  BlockStage stage{
      .messages = is_all_reduce(kind) ? 2 : 1, .reduces = kind != CollectiveKind::broadcast, .in_switch = true};
  for (int32_t place = 0; place < members; ++place) {
    BlockTransfer transfer{.from = place, .to = (place + 1) % members, .first = 0, .count = 1};
    if (kind == CollectiveKind::broadcast) transfer.from = root, transfer.to = place;
    if (kind == CollectiveKind::reduce) transfer.to = root;
    if (transfer.from != transfer.to) stage.transfers.push_back(transfer);
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
