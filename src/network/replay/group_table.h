// Process groups as traces and files name them -> lists of ranks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "network/replay/workload.h"

namespace foretoken {

// Every group of a workload, each once, however many ranks mention it.
class GroupTable {
 public:
  explicit GroupTable(int64_t ranks) : ranks_(ranks) {}

  int64_t rank_count() const { return ranks_; }
  size_t size_of(int32_t group) const { return groups_[static_cast<size_t>(group)].ranks.size(); }
  // The index of a group; a new one where none has that name and those ranks. `ranks` in any order, each once.
  int32_t group(const std::string& name, std::vector<int32_t> ranks);
  int32_t all();  // every rank
  // The ranks that differ from `rank` in the chosen dimensions only, where rank = i0 + d0 * (i1 + d1 * (i2 + ...)).
  int32_t along(std::span<const int64_t> dimensions, const std::vector<bool>& chosen, int64_t rank);

  std::vector<ReplayGroup> take() { return std::move(groups_); }

 private:
  int64_t ranks_ = 0;
  int32_t all_ = -1;
  std::vector<ReplayGroup> groups_;
  std::map<std::pair<std::string, std::vector<int32_t>>, int32_t> known_;
};

// Group by name.
using NamedGroups = std::map<std::string, std::vector<int32_t>, std::less<>>;

// ASTRA-sim's communicator group file: {"0": [0, 1, 2, 3], "1": [4, 5, 6, 7]}. InputError for a rank named twice in a
// group, or not below `ranks`.
NamedGroups read_group_file(const std::filesystem::path& path, int64_t ranks);

// What PyTorch writes into the inputs of its node "## process_group:init ##": a list of {"pg_name": "0", "ranks": [0,
// 1],
// ...} as text, in quotes of Python around it or not. An empty list of ranks is all of them. Nothing where the text is
// something else.
NamedGroups groups_in_metadata(std::string_view values, int64_t ranks);

}  // namespace foretoken
