#include "accelerator/workload/layer_list.h"

#include <algorithm>
#include <iterator>

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
      if (other.zeros == layer.zeros && same_sizes(other.problem, layer.problem)) found = &other;
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

std::vector<AcceleratorLayer> layers_to_fuse(std::span<const Operator> operators) {
  std::vector<std::vector<AcceleratorLayer>> groups;
  const auto same_group = [](const auto& one, const auto& other) {
    if (one.size() != other.size()) return false;
    for (size_t i = 0; i < one.size(); ++i) {
      if (!same_sizes(one[i].problem, other[i].problem)) return false;
    }
    return true;
  };
  for (const Operator& own : operators) {
    std::vector<CountedProblem> parts = operator_problems(own.shape);
    const bool attends = attention_scores(own.shape, parts) > 0;  // pairs: queries by keys, then scores by values
    for (size_t i = 0; i < parts.size();) {
      std::vector<AcceleratorLayer> group;
      for (size_t end = i + (attends ? 2 : 1); i < end; ++i) {
        const char* part = !attends ? "" : group.empty() ? " scores" : " values";
        group.push_back({.name = own.name + part,
                         .problem = std::move(parts[i].problem),
                         .count = parts[i].count * static_cast<double>(own.count),
                         .from_previous = !group.empty()});
      }
      const auto found = std::ranges::find_if(groups, [&](const auto& other) { return same_group(other, group); });
      if (found == groups.end()) {
        groups.push_back(std::move(group));
      } else {
        for (size_t p = 0; p < group.size(); ++p) (*found)[p].count += group[p].count;
      }
    }
  }
  std::vector<AcceleratorLayer> layers;
  for (auto& group : groups) std::ranges::move(group, std::back_inserter(layers));
  return layers;
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
