// A replayed execution trace for people, for programs, and as a timeline.
#pragma once

#include <string>

#include "base/json.h"
#include "network/replay/summary.h"

namespace foretoken {

// What was replayed, in words: shown in the answer.
struct ReplayOrigin {
  std::string prefix;
  std::string network;  // "closed form on h100_ib_rail"
  std::string compute;  // "recorded", "predicted on h100_sxm"
};

Json replay_json(const ReplayWorkload& workload, const ReplayResult& result, const ReplayOrigin& origin);

// A headline, where the ranks' time went, the collectives, what the end waited for.
std::string replay_text(const ReplayWorkload& workload, const ReplayResult& result, const ReplayOrigin& origin);

// A Chrome trace: one process per rank, one track per lane and one for each process group and direction of messages.
// Written as text, since a million events as Json values would take a gigabyte. Only the first `ranks` of them.
std::string replay_trace(const ReplayWorkload& workload, const ReplayResult& result, size_t ranks);

}  // namespace foretoken
