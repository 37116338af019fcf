// Why a replay cannot go on, for people.
#pragma once

#include <span>
#include <string>

#include "network/replay/matching.h"
#include "network/replay/node_run.h"
#include "network/replay/workload.h"

namespace foretoken {

// Follows what an unfinished node waits for, from node to node and rank to rank, until one comes up again: "rank 0 node
// 4 (all_reduce) -> rank 1 node 9 (...) -> rank 0 node 4". `runs` by node number, at least one of them unfinished.
std::string waiting_circle(const ReplayWorkload& workload, const NodeNumbers& numbers, const Matching& matching,
                           std::span<const NodeRun> runs);

}  // namespace foretoken
