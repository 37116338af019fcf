#include "accelerator/workload/layer_list.h"

#include "accelerator/workload/operator_problems.h"

namespace foretoken {
namespace {

bool same_sizes(const Problem& a, const Problem& b) {
  if (a.dimensions.size() != b.dimensions.size() || a.tensors.size() != b.tensors.size()) return false;
  for (size_t d = 0; d < a.dimensions.size(); ++d) {
    if (a.dimensions[d].name != b.dimensions[d].name || a.dimensions[d].size != b.dimensions[d].size) return false;
  }
  for (size_t t = 0; t < a.tensors.size(); ++t) {
    const auto& left = a.tensors[t];
    const auto& right = b.tensors[t];
    if (left.name != right.name || left.ranks.size() != right.ranks.size()) return false;
    for (size_t r = 0; r < left.ranks.size(); ++r) {
      if (left.ranks[r].size() != right.ranks[r].size()) return false;
      for (size_t i = 0; i < left.ranks[r].size(); ++i) {
        if (left.ranks[r][i].dimension != right.ranks[r][i].dimension) return false;
        if (left.ranks[r][i].coefficient != right.ranks[r][i].coefficient) return false;
      }
    }
  }
  return true;
}

}  // namespace

std::vector<AcceleratorLayer> merged_layers(std::vector<AcceleratorLayer> layers) {
  std::vector<AcceleratorLayer> merged;
  for (AcceleratorLayer& layer : layers) {
    AcceleratorLayer* found = nullptr;
    for (AcceleratorLayer& other : merged) {
      if (same_sizes(other.problem, layer.problem)) found = &other;
    }
    if (found != nullptr) {
      found->count += layer.count;
    } else {
      merged.push_back(std::move(layer));
    }
  }
  return merged;
}

std::vector<AcceleratorLayer> layers_of(std::span<const Operator> operators) {
  std::vector<AcceleratorLayer> layers;
  for (const Operator& own : operators) {
    for (CountedProblem& part : operator_problems(own.shape)) {
      layers.push_back(
          {.name = own.name, .problem = std::move(part.problem), .count = part.count * static_cast<double>(own.count)});
    }
  }
  return merged_layers(std::move(layers));
}

std::vector<AcceleratorLayer> accelerator_layers(std::span<const NetworkLayer> layers) {
  std::vector<AcceleratorLayer> all;
  for (const NetworkLayer& layer : layers) {
    all.push_back({.name = layer.name,
                   .problem = layer_problem(layer),
                   .count = static_cast<double>(layer.count),
                   .from_previous = layer.from_previous});
  }
  return all;
}

}  // namespace foretoken
