// Runs a workload: nodes start when what they wait for is over and their lane is free, collectives when every member is
// there. Says when each node ran, where every rank's time went, and which chain of nodes set the end.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/simulated_time.h"
#include "network/replay/matching.h"
#include "network/replay/network.h"
#include "network/replay/node_run.h"
#include "network/replay/workload.h"

namespace foretoken {

// Where a rank's time went, from 0 to the end of the last rank. The parts add up to that: what is under way counts for
// the first that applies.
struct RankTimes {
  Picoseconds compute = 0;
  Picoseconds exposed_communication = 0;  // bytes of this rank move, and no kernel runs beside
  Picoseconds memory = 0;
  Picoseconds waiting = 0;  // in a collective or receive whose other side is not there yet
  Picoseconds host = 0;     // only the CPU is busy
  Picoseconds idle = 0;
  Picoseconds communication = 0;  // bytes move, hidden behind compute or not; no part of the sum
  Picoseconds finish = 0;         // of its last node; no part of the sum
};

struct CollectiveRun {
  CollectiveKind kind = CollectiveKind::all_reduce;
  int32_t group = 0;
  double bytes = 0;
  Picoseconds first_arrival = 0;
  Picoseconds start = 0;  // the last arrival
  Picoseconds finish = 0;
};

struct PathStep {
  uint32_t rank = 0;
  uint32_t node = 0;      // in program order
  Picoseconds start = 0;  // from when nothing but this node held up the end; of a collective the last arrival
  Picoseconds finish = 0;
};

struct ReplayResult {
  Picoseconds makespan = 0;
  std::vector<RankTimes> ranks;
  std::vector<CollectiveRun> collectives;   // by start
  std::vector<std::vector<NodeRun>> nodes;  // by rank, in program order
  std::vector<PathStep> critical_path;      // without gaps, from 0 to makespan
};

struct ReplayOptions {
  // The part of a rank's processors that a collective keeps from kernels that run beside it: they slow down by what is
  // gone, but never stop. Empty: none, as recorded times want it, which show it already.
  std::function<double(const NetworkCall&)> busy_share;
};

// Same workload, same result, to the last bit. InputError from match(), or where ranks wait for each other for ever; it
// names the circle.
ReplayResult replay(const ReplayWorkload& workload, ReplayNetwork& network, const ReplayOptions& options = {});

}  // namespace foretoken
