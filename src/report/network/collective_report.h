// Collectives over sizes, for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "network/collective_estimate.h"

namespace foretoken {

struct CollectiveRow {
  double bytes = 0;
  CollectiveEstimate estimate;
};

struct CollectiveReport {
  std::string machine;
  std::string group;  // "ranks 0 to 7", "16 ranks, 8 apart"
  CollectiveKind kind = CollectiveKind::all_reduce;
  int64_t ranks = 1;
  CollectiveOptions options;
  int64_t concurrent = 1;
  std::vector<CollectiveRow> rows;
};

// As nccl-tests counts sizes: "64 MiB".
std::string message_size_text(double bytes);

std::string collective_text(const CollectiveReport& report);
Json collective_json(const CollectiveReport& report);

}  // namespace foretoken
