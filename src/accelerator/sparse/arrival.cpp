#include "accelerator/sparse/arrival.h"

#include <algorithm>
#include <cmath>

#include "accelerator/sparse/fiber.h"
#include "accelerator/tile.h"
#include "base/error.h"

namespace foretoken {
namespace {

double product_of_chances(const std::array<double, max_problem_tensors>& factors) {
  double all = 1;
  for (const double factor : factors) all *= factor;
  return all;
}

// A condition at the level where it takes effect.
struct PlacedCondition {
  int level = -1;
  int target = 0;
  std::vector<std::pair<int, double>> nonempty;  // by tensor it depends on
  double saved_pj = -1;
};

// An optimization at a level that does not keep its target acts on the next level out that does.
PlacedCondition placed_condition(const ReadCondition& condition, int level, const Architecture& architecture,
                                 const Problem& problem, const Mapping& mapping, const Evaluation& dense,
                                 const SparsityDescription& sparsity) {
  PlacedCondition own{.level = level_outside(mapping, condition.target, level + 1), .target = condition.target};
  if (own.level < 0) return own;
  double arriving = 1;
  for (const int tensor : condition.on) {
    const double nonempty =
        meets_nonzeros(problem, mapping, architecture, level, condition.target, tensor, *sparsity.densities[tensor]);
    own.nonempty.emplace_back(tensor, nonempty);
    arriving *= nonempty;
  }
  const TensorTraffic& traffic = traffic_at(dense, problem, own.level, condition.target);
  own.saved_pj = (1 - arriving) * traffic.reads * traffic.instances * architecture.levels[own.level].energy.read_pj /
                 architecture.levels[own.level].words_per_access;
  return own;
}

// What the multipliers fetch from the last level that keeps the target: a word for every turn of the innermost loop,
// whichever dimension that has, and of all instances that work side by side.
TileSizes words_at_once(const Mapping& mapping, int home) {
  TileSizes tile;
  tile.fill(1);
  for (const Loop& loop : mapping.loops) {
    if (loop.level >= home && is_spatial(loop)) tile[loop.dimension] *= static_cast<double>(loop.bound);
  }
  return tile;
}

}  // namespace

Arrival::Arrival() {
  unskipped.fill(1);
  ungated.fill(1);
}

void Arrival::add(ZeroAction action, int tensor, double nonempty) {
  if (action == ZeroAction::skip) unskipped[tensor] = std::min(unskipped[tensor], nonempty);
  ungated[tensor] = std::min(ungated[tensor], nonempty);
}

void Arrival::add(const Arrival& other) {
  for (int t = 0; t < max_problem_tensors; ++t) {
    unskipped[t] = std::min(unskipped[t], other.unskipped[t]);
    ungated[t] = std::min(ungated[t], other.ungated[t]);
  }
}

double Arrival::not_skipped() const {
  return product_of_chances(unskipped);
}

double Arrival::arriving() const {
  return product_of_chances(ungated);
}

double meets_nonzeros(const Problem& problem, const Mapping& mapping, const Architecture& architecture, int level,
                      int target, int on, const DensityModel& density) {
  const ProblemTensor& moved = problem.tensors[target];
  const int home = level_outside(mapping, target, level + 1);
  ensure(home >= 0, "a target is kept somewhere");
  const int child = level_inside(mapping, target, home);
  int moves = -1;
  for (int i = 0; i < std::ssize(mapping.loops); ++i) {
    const Loop& loop = mapping.loops[i];
    if (loop.level >= level && loop.level < child && loop.bound > 1 && uses_dimension(moved, loop.dimension)) moves = i;
  }
  const bool feeds_multipliers = child == std::ssize(mapping.kept);
  TileSizes tile = feeds_multipliers ? words_at_once(mapping, home)
                   : moves >= 0      ? tile_inside(mapping, problem, moves + 1)
                                     : tile_at(mapping, problem, home);
  if (moves >= 0) {
    // An access that brings the words of several turns of the loop is needed if one of them is.
    const double turns = std::ceil(architecture.levels[home].words_per_access / tile_words(moved, tile));
    const int dimension = mapping.loops[moves].dimension;
    tile[dimension] = std::min(tile[dimension] * turns, static_cast<double>(problem.dimensions[dimension].size));
  }
  return 1 - density.empty_probability(tile_extents(problem.tensors[on], tile));
}

std::vector<Arrival> read_arrivals(const Architecture& architecture, const Problem& problem, const Mapping& mapping,
                                   const Evaluation& dense, const SparsityDescription& sparsity) {
  const auto tensors = static_cast<int>(problem.tensors.size());
  std::vector<Arrival> arrivals(mapping.kept.size() * problem.tensors.size());
  for (const ReadOptimization& read : sparsity.reads) {
    PlacedCondition best;
    for (const ReadCondition& condition : read.options) {
      PlacedCondition option = placed_condition(condition, read.level, architecture, problem, mapping, dense, sparsity);
      if (option.level >= 0 && option.saved_pj > best.saved_pj) best = std::move(option);
    }
    if (best.level < 0) continue;
    Arrival& own = arrivals[best.level * tensors + best.target];
    for (const auto& [tensor, nonempty] : best.nonempty) own.add(read.action, tensor, nonempty);
  }
  // What is not read further out does not come further in.
  for (int level = 0; level < std::ssize(mapping.kept); ++level) {
    for (int t = 0; t < tensors; ++t) {
      const int parent = level_outside(mapping, t, level);
      if (parent >= 0) arrivals[level * tensors + t].add(arrivals[parent * tensors + t]);
    }
  }
  return arrivals;
}

}  // namespace foretoken
