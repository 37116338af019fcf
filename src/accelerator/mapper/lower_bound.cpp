#include "accelerator/mapper/lower_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "accelerator/element_width.h"
#include "accelerator/tile.h"

namespace foretoken {
namespace {

// Different values of a rank's index at least: the box has holes where no sum falls.
double least_indices(const std::vector<ProjectionTerm>& rank, const Problem& problem) {
  const auto values = [&](const ProjectionTerm& term) {
    return Multiples{.coefficient = static_cast<double>(term.coefficient),
                     .size = static_cast<double>(problem.dimensions[term.dimension].size)};
  };
  double others = 1;  // sets of n and of m values have n + m - 1 different sums at least
  for (const ProjectionTerm& term : rank) others += values(term).size - 1;
  double least = others;
  for (size_t i = 0; i < rank.size(); ++i) {
    for (size_t j = i + 1; j < rank.size(); ++j) {
      const Multiples a = values(rank[i]), b = values(rank[j]);
      least = std::max(least, others - (a.size - 1) - (b.size - 1) + distinct_sums(a, b) - 1);
    }
  }
  return least;
}

double least_words(const ProblemTensor& tensor, const Problem& problem) {
  double words = 1;
  for (const auto& rank : tensor.ranks) words *= least_indices(rank, problem);
  return words;
}

double share_below(const Architecture& architecture, int level, bool written) {
  double share = 1;
  for (size_t i = level; i + 1 < architecture.levels.size(); ++i) {
    const AcceleratorLevel& own = architecture.levels[i];
    if (!(written ? own.spatial_reduction : own.multicast) && !own.neighbour_links) continue;
    share *= static_cast<double>(fanout_x(architecture, i) * fanout_y(architecture, i));
  }
  return share;
}

// The most multipliers that one access to `level` can serve.
double widest_share(const Architecture& architecture, const Problem& problem, int level, int tensor_index) {
  const ProblemTensor& tensor = problem.tensors[tensor_index];
  const double instances_below = share_below(architecture, level, tensor.written);
  for (size_t i = level; i + 1 < architecture.levels.size(); ++i) {
    if (architecture.levels[i].neighbour_links) return instances_below;
  }
  double users = 1;
  for (size_t d = 0; d < problem.dimensions.size(); ++d) {
    if (!uses_dimension(tensor, static_cast<int>(d))) users *= static_cast<double>(problem.dimensions[d].size);
  }
  // Sums of two indices coincide at most as often as the smaller one takes values.
  for (const auto& rank : tensor.ranks) {
    double all = 1, largest = 1;
    for (const ProjectionTerm& term : rank) {
      const auto size = static_cast<double>(problem.dimensions[term.dimension].size);
      all *= size;
      largest = std::max(largest, size);
    }
    users *= all / largest;
  }
  return std::min(users, instances_below);
}

// Least energy of a tensor's traffic, levels up to `outside` not counted, over all choices of levels that keep it.
double least_tensor_energy(const Architecture& architecture, const Problem& problem, const MappingSpace& space,
                           int tensor_index, int outside) {
  const ProblemTensor& tensor = problem.tensors[tensor_index];
  const double words = least_words(tensor, problem);
  const auto per_word = [&](int level, double pj) {
    if (level <= outside) return 0.0;
    const AcceleratorLevel& own = architecture.levels[level];
    return pj * words_of_element(architecture, level, tensor) / own.words_per_access / own.cluster_size;
  };
  // From the innermost level outwards: the least cost of everything inside, when `level` keeps the tensor.
  std::vector<double> least(space.levels, std::numeric_limits<double>::infinity());
  const auto may = [&](int level) { return (space.may_keep[level] >> tensor_index & 1) != 0; };
  const auto must = [&](int level) { return (space.must_keep[level] >> tensor_index & 1) != 0; };
  double best = std::numeric_limits<double>::infinity();
  for (int i = space.levels - 1; i >= 0; --i) {
    if (!may(i)) continue;
    const AccessEnergy& energy = architecture.levels[i].energy;
    bool innermost = true;  // it may be
    for (int j = i + 1; j < space.levels; ++j) innermost = innermost && !must(j);
    if (innermost) {
      const double served = operations(problem) / widest_share(architecture, problem, i, tensor_index);
      if (tensor.written) {
        // Every instance may start sums of its own, which then need no read.
        double starts = static_cast<double>(instances(architecture.levels[i]));
        starts = words * std::min(starts, operations(problem) / words);
        least[i] = per_word(i, served * energy.update_pj + std::max(0.0, served - starts) * energy.read_pj);
      } else {
        least[i] = per_word(i, served * energy.read_pj);
      }
    }
    for (int j = i + 1; j < space.levels; ++j) {
      const AccessEnergy& inner = architecture.levels[j].energy;
      const double moved = tensor.written ? per_word(i, words * energy.update_pj)
                                          : per_word(i, words * energy.read_pj) + per_word(j, words * inner.fill_pj);
      least[i] = std::min(least[i], least[j] + moved);
      if (must(j)) break;  // it cannot be passed by
    }
    bool outermost = true;
    for (int j = 0; j < i; ++j) outermost = outermost && !must(j);
    if (outermost) best = std::min(best, least[i]);
  }
  return best;
}

// Three tensors, each dimension in exactly two of them: Z[m,n] += A[m,k] B[k,n], also with several dimensions each.
bool is_matrix_product(const Problem& problem, const MappingSpace& space) {
  if (space.tensors != 3) return false;
  for (const ProblemTensor& tensor : problem.tensors) {
    for (const auto& rank : tensor.ranks) {
      if (rank.size() != 1) return false;
    }
  }
  for (int d = 0; d < space.dimensions; ++d) {
    if (space.size[d] == 1) continue;
    int users = 0;
    for (const uint32_t bits : space.related) users += static_cast<int>(bits >> d & 1);
    if (users != 2) return false;
  }
  return true;
}

double narrowest_element(const Architecture& architecture, const Problem& problem, size_t level) {
  double words = std::numeric_limits<double>::infinity();
  for (const ProblemTensor& tensor : problem.tensors) {
    words = std::min(words, words_of_element(architecture, level, tensor));
  }
  return words;
}

// Elements that must cross into the levels inside `level`; 0 when nothing is known.
double least_crossing(const Architecture& architecture, const Problem& problem, int level) {
  double held = 0;
  for (size_t i = level + 1; i + 1 < architecture.levels.size(); ++i) {
    const AcceleratorLevel& own = architecture.levels[i];
    if (own.kind != LevelKind::storage) continue;
    if (words_held(own) == 0) return 0;
    held += static_cast<double>(words_held(own) * own.buffers) * static_cast<double>(instances(own)) /
            narrowest_element(architecture, problem, i);
  }
  if (held == 0) return 0;
  return std::max(0.0, 2 * operations(problem) / std::sqrt(held) - 2 * held);
}

double least_access_energy(const Architecture& architecture, const MappingSpace& space, const Problem& problem) {
  double best = 0;
  for (int t = 0; t < space.tensors; ++t) best += least_tensor_energy(architecture, problem, space, t, -1);
  const uint32_t all = (1U << space.tensors) - 1;
  if (!is_matrix_product(problem, space) || space.must_keep[0] != all) return best;
  double cheapest = std::numeric_limits<double>::infinity();
  for (int i = 0; i + 1 < space.levels; ++i) {
    const AcceleratorLevel& own = architecture.levels[i];
    if (own.kind == LevelKind::storage) {
      const double per_element = narrowest_element(architecture, problem, i) / own.words_per_access / own.cluster_size;
      cheapest = std::min(cheapest, std::min(own.energy.read_pj, own.energy.update_pj) * per_element);
    }
    double bound = least_crossing(architecture, problem, i) * cheapest;
    for (int t = 0; t < space.tensors; ++t) bound += least_tensor_energy(architecture, problem, space, t, i);
    best = std::max(best, bound);
  }
  return best;
}

// The largest product of bounds that fits a fan-out.
int64_t most_used(const MappingSpace& space, int slot) {
  const int64_t fanout = space.slots[slot].fanout;
  std::vector<bool> reachable(fanout + 1, false);
  reachable[1] = true;
  for (int d = 0; d < space.dimensions; ++d) {
    const int64_t given = space.fixed[space.slot_index(slot, d)];
    const int64_t most = given != 0 ? given : space.most[space.slot_index(slot, d)];
    std::vector<bool> next(fanout + 1, false);
    for (int64_t bound = given != 0 ? given : 1; bound <= most; ++bound) {
      if (given == 0 && !space.uneven[d] && space.size[d] % bound != 0) continue;
      for (int64_t before = 1; before * bound <= fanout; ++before) {
        if (reachable[before]) next[before * bound] = true;
      }
    }
    reachable = std::move(next);
  }
  int64_t used = fanout;
  while (used > 1 && !reachable[used]) --used;
  return used;
}

}  // namespace

MappingBound lower_bound(const Architecture& architecture, const Problem& problem, const MappingSpace& space,
                         const EvaluationRules& rules) {
  double multipliers = 1;
  for (int s = 0; s < std::ssize(space.slots); ++s) {
    if (space.slots[s].kind != LoopKind::temporal) multipliers *= static_cast<double>(most_used(space, s));
  }
  MappingBound bound{.energy_pj = 0,
                     .cycles = operations(problem) / multipliers * architecture.levels.back().operation_cycles};
  const AcceleratorLevel& outer = architecture.levels.front();
  double read = 0, written = 0;
  for (int t = 0; t < space.tensors; ++t) {
    if ((space.must_keep[0] >> t & 1) == 0) continue;
    (problem.tensors[t].written ? written : read) +=
        least_words(problem.tensors[t], problem) * words_of_element(architecture, 0, problem.tensors[t]);
  }
  const auto outer_instances = static_cast<double>(instances(outer));
  if (outer.bandwidth.read) bound.cycles = std::max(bound.cycles, read / outer_instances / *outer.bandwidth.read);
  if (outer.bandwidth.write) bound.cycles = std::max(bound.cycles, written / outer_instances / *outer.bandwidth.write);
  if (outer.bandwidth.shared) {
    bound.cycles = std::max(bound.cycles, (read + written) / outer_instances / *outer.bandwidth.shared);
  }
  bound.cycles = std::ceil(bound.cycles * (1 - 1e-12));
  bound.energy_pj = operations(problem) * architecture.levels.back().energy.compute_pj +
                    least_access_energy(architecture, space, problem);
  for (const AcceleratorLevel& own : architecture.levels) {
    const bool computes = own.kind == LevelKind::compute;
    const double leaking = rules.idle_parts_leak ? static_cast<double>(instances(own)) : computes ? 0 : 1;
    bound.energy_pj += leaking * own.energy.leak_pj_per_cycle * bound.cycles;
  }
  return bound;
}

}  // namespace foretoken
