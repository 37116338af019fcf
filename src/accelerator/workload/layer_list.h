// A network as the layers an accelerator runs one after another, equal ones counted rather than repeated.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "accelerator/problem.h"
#include "accelerator/workload/network_layer.h"
#include "model/step.h"

namespace foretoken {

struct AcceleratorLayer {
  std::string name;  // of the first of its kind
  Problem problem;
  double count = 1;
  bool from_previous = false;  // its only input is what the layer before it puts out, unchanged but for an activation
  std::string zeros;           // tells it from layers of its size that have other zeros
};

// Layers with equal problems and zeros become one with the sum of their counts, at the place of the first.
std::vector<AcceleratorLayer> merged_layers(std::vector<AcceleratorLayer> layers);

// The multiplications of a model's step; operators without any are left out.
std::vector<AcceleratorLayer> layers_of(std::span<const Operator> operators);

// The same for fusion: the two products of an attention stand together, the second fed by the first, and only whole
// operators are merged.
std::vector<AcceleratorLayer> layers_to_fuse(std::span<const Operator> operators);

// In the order given, not merged.
std::vector<AcceleratorLayer> accelerator_layers(std::span<const NetworkLayer> layers);

}  // namespace foretoken
