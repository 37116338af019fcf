#include "network/replay/group_table.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace foretoken {
namespace {

std::vector<int32_t> every_rank(int64_t count) {
  std::vector<int32_t> ranks(static_cast<size_t>(count));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

}  // namespace

int32_t GroupTable::group(const std::string& name, std::vector<int32_t> ranks) {
  std::vector<int32_t> ascending = ranks;
  std::sort(ascending.begin(), ascending.end());
  const auto [place, is_new] =
      known_.try_emplace(std::pair(name, std::move(ascending)), static_cast<int32_t>(groups_.size()));
  if (is_new) {
    groups_.push_back({.name = name, .ranks = place->first.second});
    if (ranks != groups_.back().ranks) groups_.back().listed = std::move(ranks);
  }
  return place->second;
}

int32_t GroupTable::all() {
  if (all_ < 0) all_ = group("all", every_rank(ranks_));
  return all_;
}

int32_t GroupTable::along(std::span<const int64_t> dimensions, const std::vector<bool>& chosen, int64_t rank) {
  std::string name = "dimensions";
  std::vector<int32_t> members = {0};
  int64_t stride = 1;
  for (size_t i = 0; i < dimensions.size(); ++i) {
    const bool varies = i < chosen.size() && chosen[i];
    const std::vector<int32_t> before = std::move(members);
    members.clear();
    const int64_t mine = rank / stride % dimensions[i];
    for (int64_t place = varies ? 0 : mine; place < (varies ? dimensions[i] : mine + 1); ++place) {
      for (const int32_t member : before) members.push_back(static_cast<int32_t>(member + place * stride));
    }
    if (varies) name += fmt::format(" {}", i);
    stride *= dimensions[i];
  }
  return group(name, std::move(members));
}

}  // namespace foretoken
