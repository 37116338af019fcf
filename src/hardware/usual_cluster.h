// Several nodes of a kind where nobody named a cluster.
#pragma once

#include <string>

#include "hardware/catalogue.h"
#include "hardware/cluster.h"

namespace foretoken {

// Where nobody knows the network of a node: a 200 Gbit/s card for every four devices.
NetworkCards assumed_cards(int devices);

// The first that is built from such nodes, with the cards of this one; else its cards behind one fat tree.
Cluster usual_cluster(const HardwareCatalogue& catalogue, Node node);

// "16 ranks span 2 nodes ...": what is assumed of it. `{cluster}` stands for the name of that field.
std::string assumed_cluster_text(const Cluster& cluster, int64_t ranks);

std::string rate_words(BytesPerSecond rate);  // 25 GB/s

}  // namespace foretoken
