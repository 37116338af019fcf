// What a step or a graph does beside its multiplications: softmax, norms, activations, rotations, casts.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/step.h"

namespace foretoken {

struct VectorWork {
  std::string family;     // "norm", "activation", ...; "softmax" also for that inside attention
  double count = 0;       // calls
  double operations = 0;  // of all of them
};

// In the order of their first appearance; operators that only move data have no operations.
std::vector<VectorWork> vector_work(std::span<const Operator> operators);

// Maximum, difference, exponential, sum and quotient of an element, as model/work.h counts them.
constexpr double softmax_operations = 5;

}  // namespace foretoken
