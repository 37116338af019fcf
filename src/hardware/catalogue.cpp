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

std::filesystem::path device_file_in(const std::filesystem::path& folder, const std::string& stem) {
  return folder / "devices" / (stem + ".json");
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
  devices_ = file_stems(folder_ / "devices");
  if (!own_.empty()) take_own_devices();
  nodes_ = stems_of("nodes");
  clusters_ = stems_of("clusters");
}

// One that is called as a device that ships would be answered with that one's measurements: it is left out, and refused
// where it is asked for.
void HardwareCatalogue::take_own_devices() {
  const std::vector<std::string> shipped = devices_;
  for (std::string& stem : file_stems(own_ / "devices")) {
    const auto same = std::find_if(shipped.begin(), shipped.end(), [&](const std::string& one) {
      return comparable_name(one) == comparable_name(stem);
    });
    if (same != shipped.end()) {
      hidden_.emplace(comparable_name(stem), device_file_in(own_, stem));
      continue;
    }
    devices_.push_back(stem);
    own_devices_.push_back(std::move(stem));
  }
  std::sort(devices_.begin(), devices_.end());
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

bool HardwareCatalogue::is_own(const std::string& stem) const {
  return std::find(own_devices_.begin(), own_devices_.end(), stem) != own_devices_.end();
}

std::filesystem::path HardwareCatalogue::device_file(const std::string& stem) const {
  return device_file_in(is_own(stem) ? own_ : folder_, stem);
}

Device HardwareCatalogue::device_entry(const std::string& stem, const DeviceFinder& like) const {
  Device device = read_device_file(device_file(stem), like);
  // A copy may keep the name inside, by which measurements of the device it was copied from would be found.
  if (is_own(stem)) device.name = stem;
  return device;
}

Device HardwareCatalogue::find_device(const std::string& name_or_path, const DeviceFinder& like) const {
  // Aliases that a copy kept go on meaning the device that ships.
  std::vector<std::string> stems = devices_;
  std::stable_partition(stems.begin(), stems.end(), [&](const std::string& stem) { return !is_own(stem); });
  return find(
      name_or_path, stems, "device", [&](const std::filesystem::path& path) { return read_device_file(path, like); },
      [&](const std::string& stem) { return device_entry(stem, like); });
}

DeviceFinder HardwareCatalogue::like_finder() const {
  return [this](const std::string& name) { return find_device(name, {}); };
}

bool HardwareCatalogue::is_refused(const std::string& name) const {
  return hidden_.contains(comparable_name(name));
}

Device HardwareCatalogue::device(const std::string& name_or_path) const {
  if (name_or_path.starts_with('{')) return parse_device(name_or_path, "device", like_finder());
  if (const auto hidden = hidden_.find(comparable_name(name_or_path)); hidden != hidden_.end()) {
    throw InputError(
        {.source = hidden->second.string(),
         .value = fmt::format("{} is the name of a built-in device", name_or_path),
         .expected = fmt::format("another file name, because the measurements of the built-in device would "
                                 "be used for this one; rename it, for example to my_{}.json",
                                 hidden->second.stem().string())});
  }
  return find_device(name_or_path);
}

Node HardwareCatalogue::node(const std::string& name_or_path) const {
  const auto device_called = [this](const std::string& name) { return find_device(name); };
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
  const auto holding = [&](const std::string& name) -> std::optional<Node> {
    for (const std::string& one : nodes_) {
      Node candidate = node(one);
      if (candidate.device.name != name) continue;
      candidate.device = device;
      return candidate;
    }
    return std::nullopt;
  };
  if (std::optional<Node> own = holding(device.name)) return own;
  if (!is_own(device.name)) return std::nullopt;
  // A copy sits where the device does that it was copied from.
  const std::string copied = read_device_file(device_file(device.name), like_finder()).name;
  return copied == device.name ? std::nullopt : holding(copied);
}

}  // namespace foretoken
