// The process groups of a workload, each once, however many ranks mention it.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "network/replay/workload.h"

namespace foretoken {

class GroupTable {
 public:
  explicit GroupTable(int64_t ranks) : ranks_(ranks) {}

  int64_t rank_count() const { return ranks_; }
  size_t size_of(int32_t group) const { return groups_[static_cast<size_t>(group)].ranks.size(); }
  // The index of a group; a new one where none has that name and those ranks. `ranks` in any order, each once: the
  // group keeps the order of whoever mentions it first.
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

}  // namespace foretoken
