// Groups of ranks that do the same side by side, and the network cards that they share.
#pragma once

#include <cstdint>
#include <span>

#include "hardware/node.h"
#include "network/transfer/process_group.h"

namespace foretoken {

// Fewer network cards than devices: otherwise each group has its own.
bool shares_cards(const Node& node);

// Each device of `busy` runs a collective of a group like this one at the same time: how many of these groups use the
// busiest card of this one.
double groups_per_card(const Node& node, const ProcessGroup& group, std::span<const int64_t> busy);

// The same where all devices of the group's nodes are busy.
double groups_per_card(const Node& node, const ProcessGroup& group);

}  // namespace foretoken
