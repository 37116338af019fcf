// Topologies of users: a line of text, or a JSON file of nodes and links, or of changes to either.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "network/topology/topology.h"

namespace foretoken {

// What follows --topology: a path when it has a slash or ends in .json, else the text form.
Topology topology_from(const std::string& text_or_path);

// docs/network.md describes the format. InputError with file, line and path for anything else: unknown or repeated
// names, no devices, devices without a path between them, a change to a link that is not there.
Topology read_topology_file(const std::filesystem::path& path);
Topology parse_topology_json(std::string_view text, const std::string& source);

}  // namespace foretoken
