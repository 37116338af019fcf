#include "hardware/catalogue.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "hardware/node_file.h"

namespace foretoken {
namespace {

// `read(path)` reads one description of the folder; `typed` is a path, a stem or an alias.
template <class Read>
auto find(const std::string& typed, const std::filesystem::path& folder, const std::vector<std::string>& stems,
          std::string_view kind, const Read& read) {
  if (means_a_file(typed)) return read(std::filesystem::path(typed));
  const auto path_of = [&](const std::string& stem) { return folder / (stem + ".json"); };
  const std::string wanted = comparable_name(typed);
  for (const std::string& stem : stems) {
    if (comparable_name(stem) == wanted) return read(path_of(stem));
  }
  std::vector<std::string> candidates = stems;
  for (const std::string& stem : stems) {
    auto described = read(path_of(stem));
    for (const std::string& alias : described.aliases) {
      if (comparable_name(alias) == wanted) return described;
      candidates.push_back(alias);
    }
  }
  throw InputError({.source = std::string(kind),
                    .value = printable(typed),
                    .expected = fmt::format("the name of a {} or a path to its .json file", kind),
                    .suggestion = nearest_name(typed, candidates).value_or("")});
}

}  // namespace

std::string comparable_name(std::string_view name) {
  std::string result = lower_case(name);
  std::erase_if(result, [](char c) { return c == '-' || c == '_' || c == ' '; });
  return result;
}

HardwareCatalogue::HardwareCatalogue(std::filesystem::path folder) : folder_(std::move(folder)) {
  if (!std::filesystem::is_directory(folder_ / "devices")) {
    throw InputError(
        {.source = folder_.string(), .expected = "a folder of hardware descriptions, with devices/ in it"});
  }
  devices_ = json_stems(folder_ / "devices");
  nodes_ = json_stems(folder_ / "nodes");
  clusters_ = json_stems(folder_ / "clusters");
}

bool HardwareCatalogue::is_path(const std::string& name_or_path) {
  return means_a_file(name_or_path);
}

DeviceFinder HardwareCatalogue::like_finder() const {
  return [this](const std::string& name) {
    return find(name, folder_ / "devices", devices_, "device",
                [](const std::filesystem::path& path) { return read_device_file(path, {}); });
  };
}

Device HardwareCatalogue::device(const std::string& name_or_path) const {
  if (name_or_path.starts_with('{')) return parse_device(name_or_path, "device", like_finder());
  return find(name_or_path, folder_ / "devices", devices_, "device",
              [&](const std::filesystem::path& path) { return read_device_file(path, like_finder()); });
}

Node HardwareCatalogue::node(const std::string& name_or_path) const {
  const auto find_device = [this](const std::string& name) { return device(name); };
  return find(name_or_path, folder_ / "nodes", nodes_, "node",
              [&](const std::filesystem::path& path) { return read_node_file(path, find_device); });
}

Cluster HardwareCatalogue::cluster(const std::string& name_or_path) const {
  const auto find_node = [this](const std::string& name) { return node(name); };
  return find(name_or_path, folder_ / "clusters", clusters_, "cluster",
              [&](const std::filesystem::path& path) { return read_cluster_file(path, find_node); });
}

std::optional<Node> HardwareCatalogue::node_with(const Device& device) const {
  for (const std::string& name : nodes_) {
    Node candidate = node(name);
    if (candidate.device.name == device.name) return candidate;
  }
  return std::nullopt;
}

}  // namespace foretoken
