// Timeloop's problems: a shape of dimensions and tensors, and an instance that gives them sizes.
#pragma once

#include <string>
#include <vector>

#include "accelerator/formats/timeloop_attributes.h"
#include "accelerator/problem.h"
#include "base/json.h"

namespace foretoken {

// Sparsity of a tensor as the file states it.
struct TimeloopDensity {
  std::string tensor;
  std::string distribution = "fixed-structured";  // what Timeloop takes a bare number for
  double density = 1;
};

struct TimeloopProblem {
  Problem problem;
  std::vector<TimeloopDensity> densities;
};

// `shape` may be a description or the name of Timeloop's own convolution, cnn-layer. Sizes stand under `instance`, or
// beside the shape as in older files. InputError for a dimension without a size and for names nobody declared.
TimeloopProblem read_timeloop_problem(const JsonView& view, const TimeloopAttributes& variables);

}  // namespace foretoken
