#include "hardware/catalogue.h"

#include <algorithm>
#include <system_error>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "hardware/node_file.h"

namespace foretoken {
namespace {

// "8xH100" and "h100:8": 8 and the name. Without a count: two empty texts.
std::pair<std::string, std::string> count_and_name(const std::string& typed) {
  const auto is_count = [](const std::string& text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  };
  const size_t times = std::min(typed.find_first_of("xX"), typed.size()),
               colon = std::min(typed.find(':'), typed.size());
  if (times < typed.size() && is_count(typed.substr(0, times)))
    return {typed.substr(0, times), typed.substr(times + 1)};
  if (colon < typed.size() && is_count(typed.substr(colon + 1)))
    return {typed.substr(colon + 1), typed.substr(0, colon)};
  return {};
}

// `read(path)` reads a file of the user's, `read_entry(stem)` one of the library; `typed` is a path, a stem or an
// alias.
template <class Read, class ReadEntry>
auto find(const std::string& typed, const std::vector<std::string>& stems, std::string_view kind, const Read& read,
          const ReadEntry& read_entry) {
  if (means_a_file(typed)) return read(std::filesystem::path(typed));
  const std::string wanted = comparable_name(typed);
  for (const std::string& stem : stems) {
    if (comparable_name(stem) == wanted) return read_entry(stem);
  }
  std::vector<std::string> candidates = stems;
  for (const std::string& stem : stems) {
    auto described = read_entry(stem);
    for (const std::string& alias : described.aliases) {
      if (comparable_name(alias) == wanted) return described;
      candidates.push_back(alias);
    }
  }
  if (const auto [count, name] = count_and_name(typed); !count.empty() && kind == "device") {
    for (const std::string& candidate : candidates) {
      if (comparable_name(candidate) != comparable_name(name)) continue;
      throw InputError(
          {.source = std::string(kind),
           .value = printable(typed),
           .expected = fmt::format(
               "one device name, {}; give the number of devices separately, for example {{tensor_parallel_size}} {}",
               name, count)});
    }
  }
  throw InputError(
      {.source = std::string(kind),
       .value = printable(typed),
       .expected = fmt::format("the name of a {} (`foretoken devices` lists them) or a path to its .json file", kind),
       .suggestion = nearest_name(typed, candidates).value_or("")});
}

}  // namespace

std::string comparable_name(std::string_view name) {
  std::string result = lower_case(name);
  std::erase_if(result, [](char c) { return c == '-' || c == '_' || c == ' '; });
  return result;
}

HardwareCatalogue::HardwareCatalogue(std::filesystem::path folder, std::filesystem::path own)
    : folder_(std::move(folder)), own_(std::move(own)) {
  if (!std::filesystem::is_directory(folder_ / "devices")) {
    throw InputError(
        {.source = folder_.string(), .expected = "a folder of hardware descriptions, with devices/ in it"});
  }
  devices_ = stems_of("devices");
  nodes_ = stems_of("nodes");
  clusters_ = stems_of("clusters");
  if (!own_.empty()) own_devices_ = file_stems(own_ / "devices");
}

std::vector<std::string> HardwareCatalogue::stems_of(const char* kind) const {
  std::vector<std::string> stems = file_stems(folder_ / kind);
  if (own_.empty()) return stems;
  for (std::string& stem : file_stems(own_ / kind)) stems.push_back(std::move(stem));
  std::sort(stems.begin(), stems.end());
  stems.erase(std::unique(stems.begin(), stems.end()), stems.end());
  return stems;
}

std::filesystem::path HardwareCatalogue::file_of(const char* kind, const std::string& stem) const {
  const std::string name = stem + ".json";
  if (std::error_code ignored; !own_.empty() && std::filesystem::exists(own_ / kind / name, ignored)) {
    return own_ / kind / name;
  }
  return folder_ / kind / name;
}

bool HardwareCatalogue::is_path(const std::string& name_or_path) {
  return means_a_file(name_or_path);
}

Device HardwareCatalogue::device_entry(const std::string& stem, const DeviceFinder& like) const {
  const std::filesystem::path file = file_of("devices", stem);
  Device device = read_device_file(file, like);
  if (std::find(own_devices_.begin(), own_devices_.end(), stem) == own_devices_.end()) return device;
  const std::vector<std::string> shipped = file_stems(folder_ / "devices");
  const auto hidden = std::find_if(shipped.begin(), shipped.end(), [&](const std::string& one) {
    return comparable_name(one) == comparable_name(stem);
  });
  if (hidden != shipped.end()) {
    throw InputError({.source = file.string(),
                      .value = fmt::format("hides {}", *hidden),
                      .expected = fmt::format("a file name that is not yet in the library, whose measurements of {} "
                                              "would be taken for those of this file",
                                              *hidden),
                      .suggestion = fmt::format("my_{}.json", *hidden)});
  }
  // A copy may keep the name inside, by which measurements of the device it was copied from would be found.
  device.name = stem;
  return device;
}

Device HardwareCatalogue::find_device(const std::string& name_or_path, const DeviceFinder& like) const {
  // Aliases that a copy kept go on meaning the device that ships.
  std::vector<std::string> stems = devices_;
  std::stable_partition(stems.begin(), stems.end(), [&](const std::string& stem) {
    return std::find(own_devices_.begin(), own_devices_.end(), stem) == own_devices_.end();
  });
  return find(
      name_or_path, stems, "device", [&](const std::filesystem::path& path) { return read_device_file(path, like); },
      [&](const std::string& stem) { return device_entry(stem, like); });
}

DeviceFinder HardwareCatalogue::like_finder() const {
  return [this](const std::string& name) { return find_device(name, {}); };
}

Device HardwareCatalogue::device(const std::string& name_or_path) const {
  if (name_or_path.starts_with('{')) return parse_device(name_or_path, "device", like_finder());
  return find_device(name_or_path, like_finder());
}

Node HardwareCatalogue::node(const std::string& name_or_path) const {
  const auto device_called = [this](const std::string& name) { return device(name); };
  const auto read = [&](const std::filesystem::path& path) { return read_node_file(path, device_called); };
  return find(name_or_path, nodes_, "node", read,
              [&](const std::string& stem) { return read(file_of("nodes", stem)); });
}

Cluster HardwareCatalogue::cluster(const std::string& name_or_path) const {
  const auto find_node = [this](const std::string& name) { return node(name); };
  const auto read = [&](const std::filesystem::path& path) { return read_cluster_file(path, find_node); };
  return find(name_or_path, clusters_, "cluster", read,
              [&](const std::string& stem) { return read(file_of("clusters", stem)); });
}

std::optional<Node> HardwareCatalogue::node_with(const Device& device) const {
  for (const std::string& name : nodes_) {
    Node candidate = node(name);
    if (candidate.device.name == device.name) return candidate;
  }
  return std::nullopt;
}

}  // namespace foretoken
