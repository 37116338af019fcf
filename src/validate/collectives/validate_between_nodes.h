// Scores published collectives between nodes as `foretoken collective --cluster` predicts them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/validation.h"
#include "network/collective_estimate.h"

namespace foretoken {

class Library;

struct BetweenNodesRequest {
  std::filesystem::path data;
  std::vector<std::string> collectives;  // only these; empty = all
  std::string group_by;                  // source, cluster, collective, ranks, size or role; empty = role
};

struct BetweenNodesRow {
  size_t row = 0;  // 1-based data row
  std::string source, cluster, collective, role;
  int64_t nodes = 0, gpus_per_node = 0;
  double bytes = 0, measured_seconds = 0;
};

struct ScoredBetweenNodes {
  const BetweenNodesRow* row = nullptr;
  const CollectiveEstimate* predicted = nullptr;
};
using ScoredBetweenNodesSink = std::function<void(const ScoredBetweenNodes&)>;

// A table with the columns source, cluster, nodes, gpus_per_node, collective, bytes, latency_us, role.
bool is_between_nodes_table(const std::filesystem::path& data);

// InputError where nothing is left to score, or for a grouping nobody knows.
Validation validate_between_nodes(const BetweenNodesRequest& request, const Library& library,
                                  const ScoredBetweenNodesSink& sink = {});

std::vector<std::string> between_nodes_groupings();

}  // namespace foretoken
