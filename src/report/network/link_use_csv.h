// What links carried over time, as a table for other programs.
#pragma once

#include <span>
#include <string>

#include "network/flow/flow_simulator.h"
#include "network/topology/topology.h"

namespace foretoken {

// time_s,link,from,to,bytes_per_s,share: from that time on, until the link's next row. `share` is of its bandwidth.
std::string link_use_csv(const Topology& topology, std::span<const LinkUse> use);

}  // namespace foretoken
