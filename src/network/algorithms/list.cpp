#include "network/algorithms/list.h"

#include <fmt/format.h>

#include "base/error.h"

namespace foretoken {

// Add your line here. Earlier ones win ties of the choice.
std::span<const CollectiveAlgorithm> collective_algorithms() {
  static const CollectiveAlgorithm algorithms[] = {ring_algorithm(),         tree_algorithm(),
                                                   in_switch_algorithm(),    direct_algorithm(),
                                                   hierarchical_algorithm(), halving_doubling_algorithm(),
                                                   pat_algorithm()};
  return algorithms;
}

std::vector<std::string> collective_algorithm_names() {
  std::vector<std::string> names;
  for (const CollectiveAlgorithm& algorithm : collective_algorithms()) names.emplace_back(algorithm.name);
  return names;
}

const CollectiveAlgorithm& collective_algorithm(std::string_view name) {
  for (const CollectiveAlgorithm& algorithm : collective_algorithms()) {
    if (algorithm.name == name) return algorithm;
  }
  const std::vector<std::string> names = collective_algorithm_names();
  throw InputError({.source = "collective algorithm",
                    .value = printable(name),
                    .expected = fmt::format("one of {}", fmt::join(names, ", ")),
                    .suggestion = nearest_name(name, names).value_or("")});
}

}  // namespace foretoken
