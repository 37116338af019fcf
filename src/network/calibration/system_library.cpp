#include "network/calibration/system_library.h"

#include <algorithm>
#include <cmath>

#include "kernel/forms/call.h"

namespace foretoken {

const SystemLibrary::Known& SystemLibrary::known(const std::string& name) const {
  const auto found = known_.find(name);
  if (found != known_.end()) return found->second;
  const Device device = hardware_.find_device(name);
  return known_
      .emplace(name,
               Known{.traits = system_traits(device, hardware_.node_with(device)), .generation = generation_of(device)})
      .first->second;
}

// Finding a device's node reads every node.
const std::string& SystemLibrary::generation_without_node(const std::string& name) const {
  const auto found = generations_.find(name);
  if (found != generations_.end()) return found->second;
  return generations_.emplace(name, generation_of(hardware_.find_device(name))).first->second;
}

const SystemTraits& SystemLibrary::traits(const std::string& name) const {
  return known(name).traits;
}

const std::string& SystemLibrary::generation(const std::string& name) const {
  return known(name).generation;
}

std::vector<SystemTraits> SystemLibrary::siblings(const std::string& name,
                                                  const std::vector<std::string>& measured) const {
  const Known& own = known(name);
  return siblings_of(own.traits, own.generation, measured);
}

std::vector<SystemTraits> SystemLibrary::siblings_of(const SystemTraits& own, const std::string& generation,
                                                     const std::vector<std::string>& measured) const {
  std::vector<SystemTraits> result;
  for (const std::string& other : measured) {
    if (other == own.name || generation_without_node(other) != generation) continue;
    result.push_back(known(other).traits);
  }
  std::stable_sort(result.begin(), result.end(), [&](const SystemTraits& a, const SystemTraits& b) {
    return std::abs(a.link_rate - own.link_rate) < std::abs(b.link_rate - own.link_rate);
  });
  return result;
}

}  // namespace foretoken
