#include "compose/profile/message.h"

#include <algorithm>
#include <string_view>

#include "base/text.h"

namespace foretoken {
namespace {

struct NamedKind {
  std::string_view part;  // of the name
  CollectiveKind kind;
};

// The first that is part of the name counts: "reduce_scatter" before "scatter" and "reduce".
constexpr NamedKind named_kinds[] = {
    {"allreduce", CollectiveKind::all_reduce},
    {"all_reduce", CollectiveKind::all_reduce},
    {"allgather", CollectiveKind::all_gather},
    {"all_gather", CollectiveKind::all_gather},
    {"reduce_scatter", CollectiveKind::reduce_scatter},
    {"all_to_all", CollectiveKind::all_to_all},
    {"alltoall", CollectiveKind::all_to_all},
    {"broadcast", CollectiveKind::broadcast},
    {"barrier", CollectiveKind::barrier},
    {"gather", CollectiveKind::gather},
    {"scatter", CollectiveKind::scatter},
    {"reduce", CollectiveKind::reduce},
    {"send", CollectiveKind::send_recv},
    {"recv", CollectiveKind::send_recv},
};

struct NamedType {
  std::string_view name;  // c10::ScalarType
  double bytes;
};

constexpr NamedType named_types[] = {
    {"Float", 4}, {"Half", 2}, {"BFloat16", 2}, {"Double", 8}, {"Byte", 1},   {"Char", 1},   {"Bool", 1},
    {"Short", 2}, {"Int", 4},  {"Long", 8},     {"UInt16", 2}, {"UInt32", 4}, {"UInt64", 8}, {"ComplexFloat", 8},
};

std::optional<double> bytes_per_element(std::string_view type) {
  if (type.starts_with("Float8")) return 1;
  for (const NamedType& one : named_types) {
    if (one.name == type) return one.bytes;
  }
  return std::nullopt;
}

// "[0, 1, 2]"; empty where the profiler cut the list short ("[0, 1, ..., 63]").
std::vector<int32_t> read_ranks(std::string text) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']' || text.find("...") != std::string::npos) return {};
  std::vector<int32_t> ranks;
  std::erase(text, ' ');
  for (size_t at = 1; at < text.size() - 1;) {
    const size_t end = std::min(text.find(',', at), text.size() - 1);
    const std::optional<int64_t> rank = parse_integer(std::string_view(text).substr(at, end - at));
    constexpr int64_t most_ranks = 1 << 22;
    if (!rank || *rank < 0 || *rank > most_ranks) return {};
    ranks.push_back(static_cast<int32_t>(*rank));
    at = end + 1;
  }
  return ranks;
}

std::string text_of(const JsonView& value) {
  return value.is(Json::Kind::string) ? value.string() : value.value().dump(0);
}

}  // namespace

std::optional<ProfiledMessage> read_message(const JsonView& arguments) {
  if (!arguments.is(Json::Kind::object)) return std::nullopt;
  const auto name = arguments.find("Collective name");
  if (!name) return std::nullopt;
  const std::string called = lower_case(name->string());
  const auto* const kind = std::find_if(std::begin(named_kinds), std::end(named_kinds), [&](const NamedKind& one) {
    return called.find(one.part) != std::string::npos;
  });
  if (kind == std::end(named_kinds)) return std::nullopt;
  ProfiledMessage message{.kind = kind->kind, .sends = called.find("send") != std::string::npos};
  constexpr Range<int64_t> counts{.least = 0, .most = int64_t{1} << 50};
  const bool receives = message.kind == CollectiveKind::send_recv && !message.sends;
  if (message.kind != CollectiveKind::barrier) {
    const auto elements = arguments.find(receives ? "Out msg nelems" : "In msg nelems");
    const auto type = arguments.find("dtype");
    const std::optional<double> each = type ? bytes_per_element(type->string()) : std::nullopt;
    if (!elements || !each) return std::nullopt;
    message.bytes = static_cast<double>(elements->integer(counts)) * *each;
  }
  if (const auto group = arguments.find("Process Group Name")) message.group = text_of(*group);
  if (const auto ranks = arguments.find("Process Group Ranks")) message.ranks = read_ranks(text_of(*ranks));
  if (const auto size = arguments.find("Group size")) message.group_size = size->integer(counts);
  if (const auto peer = arguments.find(message.sends ? "Dst Rank" : "Src Rank")) {
    message.peer = peer->integer({.least = 0, .most = 1 << 22});
  }
  return message;
}

}  // namespace foretoken
