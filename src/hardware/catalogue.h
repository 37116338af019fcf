// The hardware that ships in data/hardware, and users' own files: name or path -> Device, Node, Cluster.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hardware/cluster.h"
#include "hardware/device.h"
#include "hardware/device_file.h"
#include "hardware/node.h"

namespace foretoken {

// Names are file stems or aliases; case, '-', '_' and ' ' do not matter. Anything with a slash or ending in .json is a
// path to a file of the user's. A stem costs one file read; an alias costs reading the folder (a few milliseconds).
// Holds no state beyond the list of names: safe to use from many threads.
class HardwareCatalogue {
 public:
  // `folder` holds devices/, nodes/ and clusters/. InputError when devices/ is missing. `own` is the user's folder of
  // the same form (empty, or not there: none); a node or cluster of it hides one of the same name. A device of it is
  // called as its file, and asking for one whose file is called as a device that ships is an InputError: measurements
  // are found by name.
  explicit HardwareCatalogue(std::filesystem::path folder, std::filesystem::path own = {});

  // InputError with the nearest name for one nobody knows.
  Device device(const std::string& name_or_path) const;
  // For names that nobody typed, such as device_names(): where one of the user's files is called as a device that
  // ships, this is the one that ships.
  Device find_device(const std::string& name_or_path) const { return find_device(name_or_path, like_finder()); }
  Node node(const std::string& name_or_path) const;
  Cluster cluster(const std::string& name_or_path) const;

  const std::vector<std::string>& device_names() const { return devices_; }  // sorted
  const std::vector<std::string>& node_names() const { return nodes_; }
  const std::vector<std::string>& cluster_names() const { return clusters_; }

  const std::vector<std::string>& own_device_names() const { return own_devices_; }  // of the user's folder, sorted
  // Whether device() refuses the name because one of the user's files has it.
  bool is_refused(const std::string& name) const;
  // Of one of device_names().
  std::filesystem::path device_file(const std::string& stem) const;

  // For devices that are declared to be like another: finds that other one.
  DeviceFinder like_finder() const;

  // Whether a name means a file of the user's rather than an entry.
  static bool is_path(const std::string& name_or_path);

  // The first node by name that is built from this device, if one ships: what "8 of them" usually means.
  std::optional<Node> node_with(const Device& device) const;

 private:
  // Where a node or cluster of this name lies: in the user's folder or in the shipped one.
  std::filesystem::path file_of(const char* kind, const std::string& stem) const;
  std::vector<std::string> stems_of(const char* kind) const;
  void take_own_devices();
  bool is_own(const std::string& stem) const;
  Device device_entry(const std::string& stem, const DeviceFinder& like) const;
  Device find_device(const std::string& name_or_path, const DeviceFinder& like) const;
  std::filesystem::path folder_, own_;
  std::vector<std::string> devices_, nodes_, clusters_, own_devices_;
  std::map<std::string, std::filesystem::path> hidden_;  // own files called as a shipped device, by comparable name
};

// The form in which names are compared.
std::string comparable_name(std::string_view name);

}  // namespace foretoken
