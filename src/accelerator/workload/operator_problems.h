// The multiplications of an operator as loop nests for an array; what only moves data or works element by element has
// none.
#pragma once

#include <span>
#include <vector>

#include "accelerator/problem.h"
#include "model/shapes.h"

namespace foretoken {

struct CountedProblem {
  Problem problem;
  double count = 1;  // how often it runs
};

// Bits of an element in memory, scales of its block included.
struct TensorBits {
  double input = 0, weight = 0, result = 0;
};
TensorBits tensor_bits(const KernelShape& shape);

// Formats of a product's tensors. Multipliers take words of `multiplier_bits`: wider operands are converted on their
// way in. Sums that are not complete have `sum_bits`, never less than the result.
void set_bits(Problem& problem, const TensorBits& bits, int multiplier_bits, int sum_bits);

// Elements that attention's softmax works on; 0 for other operators. `problems` are the operator's.
double attention_scores(const KernelShape& shape, std::span<const CountedProblem> problems);

// Attention becomes its two multiplications, the queries of one key head together; causal ones only the half that is
// not masked, by their count. Experts are as many equal multiplications as are hit, with the mean number of tokens.
// A layer of groups keeps them as one more dimension.
std::vector<CountedProblem> operator_problems(const KernelShape& shape);

}  // namespace foretoken
