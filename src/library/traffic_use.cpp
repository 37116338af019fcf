#include "library/traffic_use.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace foretoken {
namespace {

constexpr int64_t most_length = 100'000'000;

TrafficUse read_use(const std::string& name, const JsonView& json) {
  json.allow_only({"summary", "input_tokens", "output_tokens", "sigma", "prefix_tokens", "prefixes", "is_code",
                   "source", "slo", "slo_source"});
  const auto is_code = json.find("is_code");
  return {.name = name,
          .summary = json.at("summary").string(),
          .input_tokens = json.at("input_tokens").integer({.least = 1, .most = most_length}),
          .output_tokens = json.at("output_tokens").integer({.least = 1, .most = most_length}),
          .sigma = json.at("sigma").number({.least = 0, .most = 10}),
          .prefix_tokens = json.at("prefix_tokens").integer({.least = 0, .most = most_length}),
          .prefixes = json.at("prefixes").integer({.least = 1, .most = most_length}),
          .is_code = is_code && is_code->boolean(),
          .source = json.at("source").string(),
          .slo = json.at("slo").string(),
          .slo_source = json.at("slo_source").string()};
}

}  // namespace

std::vector<TrafficUse> read_traffic_uses(const std::filesystem::path& data) {
  const std::filesystem::path path = data / "traffic" / "uses.json";
  const Json document = read_json_file(path);
  const JsonView view(document, path.string());
  std::vector<TrafficUse> uses;
  for (const auto& [name, use] : view.at("uses").members()) uses.push_back(read_use(name, use));
  return uses;
}

TrafficUse traffic_use(const std::filesystem::path& data, const std::string& name) {
  const std::vector<TrafficUse> uses = read_traffic_uses(data);
  std::vector<std::string> names;
  for (const TrafficUse& use : uses) {
    if (use.name == lower_case(name)) return use;
    names.push_back(use.name);
  }
  throw InputError({.field = "traffic",
                    .value = printable(name),
                    .expected = fmt::format("one of {}", fmt::join(names, ", ")),
                    .suggestion = nearest_name(name, names).value_or("")});
}

}  // namespace foretoken
