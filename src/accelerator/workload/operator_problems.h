// The multiplications of an operator as loop nests for an array; what only moves data or works element by element has
// none.
#pragma once

#include <vector>

#include "accelerator/problem.h"
#include "model/shapes.h"

namespace foretoken {

struct CountedProblem {
  Problem problem;
  double count = 1;  // how often it runs
};

// Attention becomes its two multiplications, the queries of one key head together; causal ones only the half that is
// not masked, by their count. Experts are as many equal multiplications as are hit, with the mean number of tokens.
// A layer of groups keeps them as one more dimension.
std::vector<CountedProblem> operator_problems(const KernelShape& shape);

}  // namespace foretoken
