// Topologies made from copies of smaller ones.
#pragma once

#include <span>

#include "network/topology/topology.h"

namespace foretoken {

// Side by side, not joined: device i of copy c is device c x device_count + i.
NetworkGraph copies_of(const NetworkGraph& graph, int64_t count);

// Devices at the points of a grid, the first dimension fastest; those that differ in one dimension alone are joined as
// that dimension says. With several dimensions devices pass traffic on, as there is no other way between dimensions.
NetworkGraph product_of(std::span<const NetworkGraph> dimensions);

}  // namespace foretoken
