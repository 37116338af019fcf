#include "network/collective_plan.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"

namespace foretoken {
namespace {

// Messages inside a node, between the first two members of one that has them.
Stage near_stage(const GroupLayout& layout, int64_t messages, const MessageCosts& costs) {
  for (int64_t node = 0; node < layout.nodes(); ++node) {
    if (layout.members_of(node) < 2) continue;
    const int64_t place = layout.first_places[node];
    return {.transfers = {{.from = layout.devices[place], .to = layout.devices[place + 1]}},
            .messages = messages,
            .per_message = costs.near_message};
  }
  throw InternalError("messages inside a node need two members in one");
}

}  // namespace

TransferPlan transfer_plan(const BlockPlan& plan, CollectiveKind kind, double bytes, const GroupLayout& layout,
                           const MessageCosts& costs) {
  // The blocks of an all-to-all cut the buffers of all members together.
  const double buffers = kind == CollectiveKind::all_to_all ? static_cast<double>(layout.members()) : 1;
  const double block_bytes = kind == CollectiveKind::barrier ? 0 : bytes * buffers / static_cast<double>(plan.blocks);
  TransferPlan result{.start = layout.members() > 1 ? costs.start : Seconds(0)};
  for (const BlockStage& blocks : plan.stages) {
    result.start += static_cast<double>(blocks.posts) * costs.post;
    if (blocks.near_messages > 0) result.stages.push_back(near_stage(layout, blocks.near_messages, costs));
    Stage stage{.messages = blocks.messages, .per_message = costs.near_message};
    for (const BlockTransfer& transfer : blocks.transfers) {
      const int32_t from = layout.devices[transfer.from], to = layout.devices[transfer.to];
      const bool near = share_node(from, to, layout.devices_per_node);
      if (!near) stage.per_message = costs.far_message;
      const double sent = static_cast<double>(transfer.count) * block_bytes * (near ? costs.near_wire : costs.far_wire);
      Transfer* last = stage.transfers.empty() ? nullptr : &stage.transfers.back();
      if (last != nullptr && last->from == from && last->to == to && last->in_switch == transfer.in_switch) {
        last->bytes += sent;
      } else {
        stage.transfers.push_back({.from = from, .to = to, .bytes = sent, .in_switch = transfer.in_switch});
      }
    }
    if (!stage.transfers.empty()) result.stages.push_back(std::move(stage));
  }
  return result;
}

TransferPlan uneven_all_to_all(const PairBytes& pairs, const ProcessGroup& group, int64_t devices_per_node,
                               const MessageCosts& costs) {
  Stage stage{.per_message = costs.near_message};
  int64_t most_posts = 0;
  for (int64_t from = 0; from < pairs.ranks; ++from) {
    int64_t posts = 0;
    for (int64_t to = 0; to < pairs.ranks; ++to) {
      const double bytes = pairs.between(from, to);
      if (from == to || bytes == 0) continue;
      const int64_t sender = group.device(from), receiver = group.device(to);
      const bool near = share_node(sender, receiver, devices_per_node);
      if (!near) {
        stage.per_message = costs.far_message;
        ++posts;
      }
      stage.transfers.push_back({.from = static_cast<int32_t>(sender),
                                 .to = static_cast<int32_t>(receiver),
                                 .bytes = bytes * (near ? costs.near_wire : costs.far_wire)});
    }
    most_posts = std::max(most_posts, posts);
  }
  TransferPlan plan{.start = costs.start + static_cast<double>(most_posts) * costs.post};
  if (!stage.transfers.empty()) plan.stages.push_back(std::move(stage));
  return plan;
}

}  // namespace foretoken
