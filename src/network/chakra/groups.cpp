#include "network/chakra/groups.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "base/json.h"

namespace foretoken {
namespace {

std::vector<int32_t> read_ranks(const JsonView& list, int64_t count) {
  std::vector<int32_t> ranks;
  for (const JsonView& item : list.items()) {
    ranks.push_back(static_cast<int32_t>(item.integer({.least = 0, .most = count - 1})));
  }
  std::vector<int32_t> ascending = ranks;
  std::sort(ascending.begin(), ascending.end());
  if (std::adjacent_find(ascending.begin(), ascending.end()) != ascending.end()) list.fail("ranks that appear once");
  return ranks;
}

}  // namespace

NamedGroups read_group_file(const std::filesystem::path& path, int64_t ranks) {
  const Json document = read_json_file(path);
  NamedGroups groups;
  for (const auto& [name, list] : JsonView(document, path.string()).members()) {
    groups[name] = read_ranks(list, ranks);
    if (groups[name].empty()) list.fail("at least one rank");
  }
  return groups;
}

NamedGroups listed_groups_in_metadata(std::string_view values, int64_t ranks) {
  const size_t begin = values.find("[{"), end = values.rfind("}]");
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return {};
  const std::string_view text = values.substr(begin, end + 2 - begin);
  if (text.find("pg_name") == std::string_view::npos) return {};
  const std::string source = "process groups in the trace's metadata";
  const Json document = parse_json(text, source);
  NamedGroups groups;
  for (const JsonView& group : JsonView(document, source).items()) {
    const JsonView name = group.at("pg_name");
    groups[name.is(Json::Kind::string) ? name.string() : fmt::format("{}", name.integer())] =
        read_ranks(group.at("ranks"), ranks);
  }
  return groups;
}

NamedGroups groups_in_metadata(std::string_view values, int64_t ranks) {
  NamedGroups groups = listed_groups_in_metadata(values, ranks);
  for (auto& [name, members] : groups) {
    if (!members.empty()) continue;
    members.resize(static_cast<size_t>(ranks));
    std::iota(members.begin(), members.end(), 0);
  }
  return groups;
}

ChakraNode chakra_group_node(uint64_t id, const NamedGroups& groups) {
  Json list = Json::array();
  for (const auto& [name, ranks] : groups) {
    Json members = Json::array();
    for (const int32_t rank : ranks) members.push(int64_t{rank});
    list.push(Json::object({{"pg_name", name}, {"ranks", std::move(members)}}));
  }
  // In the quotes that PyTorch puts around it and ASTRA-sim takes off.
  return {.id = id,
          .name = "## process_group:init ##",
          .type = ChakraNodeType::metadata,
          .inputs = ChakraTensors{.values = fmt::format("['{}']", list.dump(0))}};
}

}  // namespace foretoken
