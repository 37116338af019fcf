// Links of a host as somebody gave them, in place of what the files of its node and cluster say.
#pragma once

#include "hardware/cluster.h"
#include "network/rank_places.h"

namespace foretoken {

// PCIe x16, one direction, after line coding. InputError for a generation that there is not.
BytesPerSecond pcie_slot_rate(int generation);

void set_links(Node& node, const LinkSpec& link);
void set_links(Cluster& cluster, const LinkSpec& link);

}  // namespace foretoken
