// A replay in a few numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "network/replay/replay.h"
#include "network/replay/workload.h"

namespace foretoken {

// Collectives of one kind, group size and size.
struct CollectiveSummary {
  CollectiveKind kind = CollectiveKind::all_reduce;
  int64_t ranks = 0;
  double bytes = 0;
  int64_t calls = 0;
  Picoseconds total = 0;  // of all calls, from the last arrival
  Picoseconds shortest = 0, longest = 0;
  Picoseconds skew = 0;  // of all calls, from the first arrival to the last
};

// What the end waited for, by kind of node (a collective's own kind) and name.
struct PathPart {
  std::string kind;
  std::string name;
  int64_t nodes = 0;
  Picoseconds time = 0;
};

struct ReplaySummary {
  Picoseconds makespan = 0;
  RankTimes mean;                              // over ranks, rounded down
  std::vector<CollectiveSummary> collectives;  // longest total first
  std::vector<PathPart> path_by_kind;          // longest first
  std::vector<PathPart> path_by_name;          // longest first
};

ReplaySummary summarize_replay(const ReplayWorkload& workload, const ReplayResult& result);

}  // namespace foretoken
