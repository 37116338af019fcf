// A topology in one line: "switch:8@450GB/s,500ns x ring:16@50GB/s,1us". docs/network.md describes it.
#pragma once

#include <string>
#include <string_view>

#include "network/topology/topology.h"

namespace foretoken {

// InputError that quotes the part that is wrong and says what was expected.
Topology parse_topology(std::string_view text);

// One line per kind: its sizes, what it is, its settings. For --help and the documentation.
std::string topology_kinds_text();

}  // namespace foretoken
