// What a communication kernel moves, as PyTorch's distributed library notes it in profiler traces.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "model/shapes.h"

namespace foretoken {

struct ProfiledMessage {
  CollectiveKind kind = CollectiveKind::all_reduce;
  bool sends = false;           // send_recv: this rank sends, else it receives
  double bytes = 0;             // that this rank puts in; of a receive, that it gets
  std::string group;            // process group; empty = the trace does not say
  std::vector<int32_t> ranks;   // of the group; empty = not listed, or not to the end
  int64_t group_size = 0;       // 0 = not known
  std::optional<int64_t> peer;  // send_recv: the other rank of the job
};

// From the arguments of an event ("Collective name", "In msg nelems", "dtype", ...: torch/csrc/distributed/c10d and
// libkineto's output_json.cpp). Nothing where they describe no message, or not all of it.
std::optional<ProfiledMessage> read_message(const JsonView& arguments);

}  // namespace foretoken
