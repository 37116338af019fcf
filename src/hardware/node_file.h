// Node and cluster JSON files -> Node, Cluster. data/hardware/README.md lists the keys.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "hardware/cluster.h"
#include "hardware/node.h"

namespace foretoken {

// Finds what a file refers to: a name, or a path to another file (already made relative to the referring file).
using DeviceLookup = std::function<Device(const std::string& name_or_path)>;
using NodeLookup = std::function<Node(const std::string& name_or_path)>;

Node read_node_file(const std::filesystem::path& path, const DeviceLookup& find_device);
Cluster read_cluster_file(const std::filesystem::path& path, const NodeLookup& find_node);

// Whether what a user typed for a device, node or cluster means a file: it has a slash or ends in .json.
bool means_a_file(const std::string& name_or_path);

}  // namespace foretoken
