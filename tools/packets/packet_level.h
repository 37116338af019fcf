// A traffic case at packet level.
#pragma once

#include <vector>

#include "network/flow/traffic_case.h"

namespace foretoken {

// Seconds at which the last byte of each transfer arrives, on the paths that the flow level takes. InputError for
// routing that spreads a flow over paths, or a link without one back.
std::vector<double> packet_level_ends(const TrafficCase& traffic, const Topology& topology);

}  // namespace foretoken
