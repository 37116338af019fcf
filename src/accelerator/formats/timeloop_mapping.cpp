#include "accelerator/formats/timeloop_mapping.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace foretoken {
namespace {

using MappingDirective = TimeloopDirective::Kind;

// Loops of one directive, outermost first; the permutation is written from the innermost.
void add_loops(const TimeloopDirective& directive, int level, const Problem& problem, Mapping& mapping,
               std::vector<const TimeloopDirective*>& written_by) {
  std::vector<const TimeloopFactor*> factor_of(problem.dimensions.size(), nullptr);
  for (const TimeloopFactor& factor : directive.factors) {
    const int dimension = directive_dimension(directive, factor.dimension, problem);
    if (factor.relation != TimeloopFactor::Relation::equal) {
      fail_directive(directive, factor.dimension, "an exact factor in a mapping, such as R=3");
    }
    if (factor_of[dimension] != nullptr) fail_directive(directive, factor.dimension, "one factor for each dimension");
    factor_of[dimension] = &factor;
  }
  std::vector<int> order = directive_permutation(directive, problem);
  for (int d = 0; d < std::ssize(problem.dimensions); ++d) {
    if (std::find(order.begin(), order.end(), d) == order.end()) order.push_back(d);
  }
  const int across = directive.split.value_or(static_cast<int>(order.size()));
  for (int i = static_cast<int>(order.size()) - 1; i >= 0; --i) {
    const TimeloopFactor* factor = factor_of[order[i]];
    if (factor == nullptr || factor->bound == 1) continue;
    const LoopKind kind = directive.kind == MappingDirective::temporal ? LoopKind::temporal
                          : i < across                                 ? LoopKind::spatial_x
                                                                       : LoopKind::spatial_y;
    mapping.loops.push_back({.level = level,
                             .dimension = order[i],
                             .bound = factor->bound,
                             .last = factor->last.value_or(0),
                             .kind = kind});
    written_by.push_back(&directive);
  }
}

// Gives a factor of 0 what the others leave, and checks the product.
void settle_dimension(Mapping& mapping, int dimension, const ProblemDimension& own,
                      std::span<const TimeloopDirective* const> written_by) {
  Loop* rest = nullptr;
  const TimeloopDirective* rest_by = nullptr;
  const TimeloopDirective* any = nullptr;
  double product = 1;
  bool uneven = false;
  for (size_t i = 0; i < mapping.loops.size(); ++i) {
    Loop& loop = mapping.loops[i];
    if (loop.dimension != dimension) continue;
    any = written_by[i];
    uneven = uneven || loop.last != 0;
    if (loop.bound != 0) {
      product *= static_cast<double>(loop.bound);
      continue;
    }
    if (rest != nullptr) fail_directive(*any, own.name, "one level that takes the rest (=0) of a dimension");
    rest = &loop;
    rest_by = any;
  }
  const auto size = static_cast<double>(own.size);
  if (rest != nullptr) {
    if (product > size) {
      fail_directive(*rest_by, own.name,
                     fmt::format("factors of at most its size, {}; they make {}", own.size, product));
    }
    const auto others = static_cast<int64_t>(product);
    rest->bound = (own.size + others - 1) / others;
    return;
  }
  if (!uneven && any != nullptr && product != size) {
    fail_directive(*any, own.name,
                   fmt::format("factors that multiply to its size, {}; they make {}", own.size, product),
                   product > size ? "a remainder, as in N=8,4" : "");
  }
}

}  // namespace

Mapping timeloop_mapping(std::span<const TimeloopDirective> directives, const Architecture& architecture,
                         const Problem& problem) {
  const int levels = static_cast<int>(architecture.levels.size()) - 1;
  Mapping mapping;
  const uint32_t all = (1U << problem.tensors.size()) - 1;
  for (int i = 0; i < levels; ++i) {
    mapping.kept.push_back(architecture.levels[i].kind == LevelKind::storage ? all : 0);
  }
  std::vector<const TimeloopDirective*> written_by;
  for (int level = 0; level < levels; ++level) {
    for (const MappingDirective kind : {MappingDirective::temporal, MappingDirective::spatial}) {
      const TimeloopDirective* before = nullptr;
      for (const TimeloopDirective& directive : directives) {
        if (directive.kind != kind || directive_level(directive, architecture) != level) continue;
        if (before != nullptr) fail_directive(directive, directive.target, "one directive of a kind for each level");
        before = &directive;
        add_loops(directive, level, problem, mapping, written_by);
      }
    }
  }
  for (const TimeloopDirective& directive : directives) {
    const int level = directive_level(directive, architecture);
    for (const std::string& name : directive.keep) {
      const int tensor = directive_tensor(directive, name, problem);
      if (architecture.levels[level].kind != LevelKind::storage) {
        fail_directive(directive, name, "nothing kept at a level that stores nothing");
      }
      mapping.kept[level] |= 1U << tensor;
    }
    for (const std::string& name : directive.bypass) {
      mapping.kept[level] &= ~(1U << directive_tensor(directive, name, problem));
    }
  }
  for (int d = 0; d < static_cast<int>(problem.dimensions.size()); ++d) {
    settle_dimension(mapping, d, problem.dimensions[d], written_by);
  }
  const std::vector<Loop> written = mapping.loops;
  set_remainders(mapping, problem);
  for (size_t i = 0; i < written.size(); ++i) {
    const Loop& loop = mapping.loops[i];
    if (written[i].last != 0 && written[i].last != loop.last) {
      fail_directive(*written_by[i], problem.dimensions[loop.dimension].name,
                     fmt::format("a remainder of {}, which the size of the dimension asks for", loop.last));
    }
  }
  return mapping;
}

}  // namespace foretoken
