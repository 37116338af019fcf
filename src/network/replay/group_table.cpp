#include "network/replay/group_table.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"

namespace foretoken {
namespace {

std::vector<int32_t> every_rank(int64_t count) {
  std::vector<int32_t> ranks(static_cast<size_t>(count));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

std::vector<int32_t> read_ranks(const JsonView& list, int64_t count) {
  std::vector<int32_t> ranks;
  for (const JsonView& item : list.items()) {
    ranks.push_back(static_cast<int32_t>(item.integer({.least = 0, .most = count - 1})));
  }
  std::sort(ranks.begin(), ranks.end());
  if (std::adjacent_find(ranks.begin(), ranks.end()) != ranks.end()) list.fail("ranks that appear once");
  return ranks;
}

}  // namespace

int32_t GroupTable::group(const std::string& name, std::vector<int32_t> ranks) {
  std::sort(ranks.begin(), ranks.end());
  const auto [place, is_new] =
      known_.try_emplace(std::pair(name, std::move(ranks)), static_cast<int32_t>(groups_.size()));
  if (is_new) groups_.push_back({.name = name, .ranks = place->first.second});
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

NamedGroups read_group_file(const std::filesystem::path& path, int64_t ranks) {
  const Json document = read_json_file(path);
  NamedGroups groups;
  for (const auto& [name, list] : JsonView(document, path.string()).members()) {
    groups[name] = read_ranks(list, ranks);
    if (groups[name].empty()) list.fail("at least one rank");
  }
  return groups;
}

NamedGroups groups_in_metadata(std::string_view values, int64_t ranks) {
  const size_t begin = values.find("[{"), end = values.rfind("}]");
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return {};
  const std::string_view text = values.substr(begin, end + 2 - begin);
  if (text.find("pg_name") == std::string_view::npos) return {};
  const std::string source = "process groups in the trace's metadata";
  const Json document = parse_json(text, source);
  NamedGroups groups;
  for (const JsonView& group : JsonView(document, source).items()) {
    const JsonView name = group.at("pg_name");
    std::vector<int32_t> members = read_ranks(group.at("ranks"), ranks);
    if (members.empty()) members = every_rank(ranks);
    groups[name.is(Json::Kind::string) ? name.string() : fmt::format("{}", name.integer())] = std::move(members);
  }
  return groups;
}

}  // namespace foretoken
