// What a mapping must look like: factors, orders, bypasses and use of the array that a designer has fixed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "accelerator/architecture.h"
#include "accelerator/problem.h"

namespace foretoken {

struct FactorRule {
  enum class Kind {
    exactly,    // C=3
    at_most,    // P<=8
    remaining,  // M=0: all that other levels leave
  };
  int dimension = 0;
  Kind kind = Kind::exactly;
  int64_t value = 1;  // of no meaning for `remaining`
};

// The loops of one level, in time or in space.
struct LoopConstraint {
  int level = 0;
  bool spatial = false;
  std::vector<FactorRule> factors;
  // Dimensions from the innermost loop outwards; those that are not named stand further out in any order.
  std::vector<int> permutation;
  // Spatial: so many of the first dimensions of `permutation` lie across X, all others down Y.
  std::optional<int> split;
  double least_utilization = 0;  // spatial: of the instances below, as a share
};

struct KeepConstraint {
  int level = 0;
  int tensor = 0;
  bool keep = true;  // else it must pass by
};

struct Constraints {
  std::string source;  // file, for messages
  std::vector<LoopConstraint> loops;
  std::vector<KeepConstraint> storage;
};

// Every contradiction: of constraints with each other, with the problem's sizes and with the architecture.
std::vector<std::string> constraint_faults(const Constraints& constraints, const Architecture& architecture,
                                           const Problem& problem);
// InputError that names them all.
void check_constraints(const Constraints& constraints, const Architecture& architecture, const Problem& problem);

}  // namespace foretoken
