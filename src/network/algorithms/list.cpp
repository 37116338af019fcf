#include "network/algorithms/list.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/kinds.h"

namespace foretoken {

// Add your line here. Earlier ones win ties of the choice.
std::span<const CollectiveAlgorithm> collective_algorithms() {
  static const CollectiveAlgorithm algorithms[] = {
      ring_algorithm(),   tree_algorithm(),         in_switch_algorithm(),        in_switch_tree_algorithm(),
      direct_algorithm(), hierarchical_algorithm(), halving_doubling_algorithm(), pat_algorithm()};
  return algorithms;
}

std::vector<std::string> collective_algorithm_names() {
  return kind_names(collective_algorithms());
}

const CollectiveAlgorithm& collective_algorithm(std::string_view name) {
  return kind_named(collective_algorithms(), name, {.source = "collective algorithm"});
}

}  // namespace foretoken
