// What a serving run spent its time on: kinds of steps, and operators.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "serving/results/typical_steps.h"

namespace foretoken {

struct OperatorShare {
  std::string name;
  double seconds = 0;  // of all steps
};
// Of typical steps, for a picture. Slowest first; what is between kernels comes as an entry of its own.
std::vector<OperatorShare> operator_shares(const std::vector<TypicalStep>& steps);

// Operators of all pools and kinds of steps together. `title` says whose steps they are.
std::string serving_breakdown_text(const std::vector<OperatorAccount>& pools, const std::string& title);
Json serving_breakdown_json(const std::vector<OperatorAccount>& pools);

}  // namespace foretoken
