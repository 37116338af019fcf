// What a serving run spent its time on: kinds of steps, and the operators of the typical step of each kind.
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
// Slowest first; what is between kernels comes as an entry of its own.
std::vector<OperatorShare> operator_shares(const std::vector<TypicalStep>& steps);

// Operators of all kinds together, each kind counted by the time it took. `title` says whose steps they are.
std::string serving_breakdown_text(const std::vector<TypicalStep>& steps, const std::string& title);
Json serving_breakdown_json(const std::vector<TypicalStep>& steps);

}  // namespace foretoken
