// In-switch: the switch adds what the ranks send and copies the sum to all. (NVLink SHARP: Ishii and Wells, "The
// NVLink-network switch", Hot Chips 2022; Graham et al., "Scalable hierarchical aggregation protocol (SHArP)", 2016.)
#include "network/algorithms/common.h"
#include "network/algorithms/list.h"

namespace foretoken {
namespace in_switch {
namespace {

std::string unsuitable(CollectiveKind kind, const GroupShape& shape) {
  if (!is_all_reduce(kind) && kind != CollectiveKind::broadcast && kind != CollectiveKind::reduce)
    return not_for("in-switch", kind);
  if (shape.nodes > 1) return "in-switch works inside one switched domain";
  if (shape.mesh) return "in-switch needs a switch, not links between pairs";
  return {};
}

// A link carries what is the same for several transfers once (Transfer::in_switch). In an all-reduce each member has
// the switch add up its share of the buffer, and then sends that sum up again for all.
BlockPlan plan(CollectiveKind kind, const GroupLayout& layout, int32_t root) {
  const auto members = static_cast<int32_t>(layout.members());
  BlockPlan plan{.blocks = members};
  if (members < 2) return plan;
  BlockStage stage{.messages = is_all_reduce(kind) ? 2 : 1, .reduces = kind != CollectiveKind::broadcast};
  for (int32_t place = 0; place < members; ++place) {
    BlockTransfer transfer{.from = place,
                           .to = (place + 1) % members,
                           .first = 0,
                           .count = is_all_reduce(kind) ? members + 1 : members,
                           .in_switch = true};
    if (kind == CollectiveKind::broadcast) transfer.from = root, transfer.to = place;
    if (kind == CollectiveKind::reduce) transfer.to = root;
    if (transfer.from != transfer.to) stage.transfers.push_back(transfer);
  }
  plan.stages.push_back(std::move(stage));
  return plan;
}

std::vector<StageLoad> loads(CollectiveKind kind, const GroupShape& shape) {
  if (!is_all_reduce(kind)) return {{.device = 1}};
  return {{.messages = 2, .device = 1 + 1 / static_cast<double>(shape.ranks)}};
}

bool nccl_considers(CollectiveKind kind, const GroupShape&) {
  return is_all_reduce(kind);
}

}  // namespace
}  // namespace in_switch

CollectiveAlgorithm in_switch_algorithm() {
  return {.name = "in_switch",
          .summary = "the switch adds and copies (NVLS, SHARP): every byte goes up and comes down about once",
          .unsuitable = in_switch::unsuitable,
          .plan = in_switch::plan,
          .loads = in_switch::loads,
          .nccl_considers = in_switch::nccl_considers,
          .steps = StepKind::in_switch,
          .simple_only = true,
          .needs_reducing_switch = true};
}

}  // namespace foretoken
