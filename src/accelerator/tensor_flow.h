// How many words of a tensor pass between two levels, in closed form from the loops between and around them.
#pragma once

#include "accelerator/evaluation_plan.h"
#include "accelerator/flat_nest.h"
#include "accelerator/tile.h"

namespace foretoken {

// What the tiles of one tensor at `child` (the compute level included) ask of the level `parent` that keeps it next
// further out, summed over all instances and the whole run.
struct TensorFlow {
  double received = 0;   // by the child level
  double delivered = 0;  // by the parent level, a word that many want counted once
  double first = 0;      // of those delivered, in the first tile of one parent
};
TensorFlow tensor_flow(const EvaluationPlan& plan, const FlatNest& nest, int tensor, int parent, int child,
                       const TileSizes& tile);

// Instances of a level that hold a copy of the same words of a tensor.
double copies(const EvaluationPlan& plan, const FlatNest& nest, int tensor, int level);

}  // namespace foretoken
