// The algorithms, one file each; list.cpp gives them their names.
#pragma once

#include "network/algorithms/algorithm.h"

namespace foretoken {

CollectiveAlgorithm ring_algorithm();
CollectiveAlgorithm tree_algorithm();
CollectiveAlgorithm halving_doubling_algorithm();
CollectiveAlgorithm direct_algorithm();
CollectiveAlgorithm hierarchical_algorithm();
CollectiveAlgorithm in_switch_algorithm();
CollectiveAlgorithm in_switch_tree_algorithm();
CollectiveAlgorithm pat_algorithm();

}  // namespace foretoken
