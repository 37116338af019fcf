#include "report/accuracy/published_accuracy.h"

#include "base/json.h"

namespace foretoken {
namespace {

constexpr JsonLimits published_limits{.max_bytes = size_t{16} << 20};

std::vector<PublishedGroup> groups_in(const JsonView& file) {
  std::vector<PublishedGroup> groups;
  for (const JsonView& set : file.at("sets").items()) {
    const std::string layer = set.at("layer").string(), source = set.at("source").string();
    for (const JsonView& entry : set.at("groups").items()) {
      PublishedGroup group{.layer = layer == "attention" ? "kernels" : layer,
                           .group = entry.at("group").string(),
                           .seen = entry.at("seen").string(),
                           .source = source,
                           .rows = entry.at("count").integer({.least = 1, .most = 1'000'000'000}),
                           .mean_error = entry.at("mape").number({.least = 0, .most = 1e6}),
                           .in_interval = std::nullopt};
      if (const std::optional<JsonView> inside = entry.find("within_interval")) {
        group.in_interval = inside->number({.least = 0, .most = 100});
      }
      groups.push_back(std::move(group));
    }
  }
  return groups;
}

}  // namespace

std::string_view PublishedGroup::system() const {
  const size_t comma = group.rfind(", ");
  return std::string_view(group).substr(comma == std::string::npos ? 0 : comma + 2);
}

std::vector<PublishedGroup> read_published_accuracy(const std::filesystem::path& path) {
  const Json document = read_json_file(path, published_limits);
  return groups_in(JsonView(document, path.string()));
}

std::vector<PublishedGroup> parse_published_accuracy(std::string_view text, const std::string& source) {
  const Json document = parse_json(text, source, published_limits);
  return groups_in(JsonView(document, source));
}

}  // namespace foretoken
