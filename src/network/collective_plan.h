// An algorithm's blocks as bytes between devices: what the flow and packet levels carry out.
#pragma once

#include "network/algorithms/algorithm.h"
#include "network/pair_bytes.h"
#include "network/transfer/protocol.h"
#include "network/transfer/transfer_plan.h"

namespace foretoken {

// `bytes` as in CollectiveShape. Transfers inside a node carry the protocol's near share of extra bytes, those between
// nodes its far share. Messages that never leave a node are a stage of their own, without bytes.
TransferPlan transfer_plan(const BlockPlan& plan, CollectiveKind kind, double bytes, const GroupLayout& layout,
                           const MessageCosts& costs);

// An all-to-all in which every pair of ranks has bytes of its own: all of them at once.
TransferPlan uneven_all_to_all(const PairBytes& pairs, const ProcessGroup& group, int64_t devices_per_node,
                               const MessageCosts& costs);

}  // namespace foretoken
