// What the levels of a design do with the tensors and dimensions of a problem, by their roles.
#pragma once

#include <string>
#include <vector>

namespace foretoken {

// Which tensors a level takes, by name or by role: inputs, weights, outputs; and what it spreads.
struct LevelTensors {
  std::vector<std::string> keep;  // empty = any that it does not bypass
  std::vector<std::string> bypass;
  // Roles of dimensions that may lie across the instances below (dimensions_allowed); empty = any.
  std::vector<std::string> spread;
};

}  // namespace foretoken
