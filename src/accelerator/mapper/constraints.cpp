#include "accelerator/mapper/constraints.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "accelerator/element_width.h"
#include "accelerator/tile.h"
#include "base/error.h"
#include "base/text.h"

namespace foretoken {
namespace {

std::string place_of(const LoopConstraint& own, const Architecture& architecture) {
  return fmt::format("{} ({})", architecture.levels[own.level].name, own.spatial ? "spatial" : "temporal");
}

void add_reference_faults(const Constraints& constraints, const Architecture& architecture, const Problem& problem,
                          std::vector<std::string>& faults) {
  const int levels = static_cast<int>(architecture.levels.size()) - 1;
  const int dimensions = static_cast<int>(problem.dimensions.size());
  const auto good_level = [&](int level) { return level >= 0 && level < levels; };
  const auto good_dimension = [&](int dimension) { return dimension >= 0 && dimension < dimensions; };
  for (const LoopConstraint& own : constraints.loops) {
    bool good = good_level(own.level);
    for (const FactorRule& rule : own.factors) good = good && good_dimension(rule.dimension);
    for (const int dimension : own.permutation) good = good && good_dimension(dimension);
    if (!good) faults.push_back("a loop constraint names a level or dimension that does not exist");
  }
  for (const KeepConstraint& own : constraints.storage) {
    if (good_level(own.level) && own.tensor >= 0 && own.tensor < std::ssize(problem.tensors)) continue;
    faults.push_back("a keep constraint names a level or tensor that does not exist");
  }
}

void add_rule_faults(const LoopConstraint& own, const Architecture& architecture, const Problem& problem,
                     std::vector<std::string>& faults) {
  const std::string place = place_of(own, architecture);
  std::vector<int> seen;
  for (const int dimension : own.permutation) {
    if (std::ranges::find(seen, dimension) != seen.end()) {
      faults.push_back(fmt::format("{}: the permutation names {} twice", place, problem.dimensions[dimension].name));
    }
    seen.push_back(dimension);
  }
  if (own.split && (!own.spatial || *own.split < 0 || *own.split > std::ssize(problem.dimensions))) {
    faults.push_back(fmt::format("{}: split {} is not a place among {} dimensions of a spatial constraint", place,
                                 *own.split, problem.dimensions.size()));
  }
  if (own.least_utilization < 0 || own.least_utilization > 1 || (own.least_utilization > 0 && !own.spatial)) {
    faults.push_back(
        fmt::format("{}: a utilization of {} is not a share of a spatial level", place, own.least_utilization));
  }
  for (const FactorRule& rule : own.factors) {
    if (rule.kind != FactorRule::Kind::remaining && rule.value < 1) {
      faults.push_back(
          fmt::format("{}: factor {} of {} is below 1", place, rule.value, problem.dimensions[rule.dimension].name));
    }
  }
}

// The most that rules at one place allow of a dimension, and what they fix it to; 0 = free.
struct RuleRange {
  int64_t most = max_dimension_size, fixed = 0;
  bool remaining = false;
};

void add_array_faults(const LoopConstraint& own, const Architecture& architecture, const Problem& problem,
                      std::vector<std::string>& faults) {
  if (!own.spatial) return;
  const int64_t x = fanout_x(architecture, own.level), y = fanout_y(architecture, own.level);
  double across = 1, down = 1, all = 1;
  for (const FactorRule& rule : own.factors) {
    if (rule.kind != FactorRule::Kind::exactly) continue;
    const auto place = std::ranges::find(own.permutation, rule.dimension) - own.permutation.begin();
    all *= static_cast<double>(rule.value);
    if (own.split) (place < *own.split ? across : down) *= static_cast<double>(rule.value);
  }
  const std::string place = place_of(own, architecture);
  if (all > static_cast<double>(x) * static_cast<double>(y)) {
    faults.push_back(fmt::format("{}: fixed factors spread over {} instances; there are {} x {}", place, all, x, y));
  } else if (across > static_cast<double>(x) || down > static_cast<double>(y)) {
    faults.push_back(
        fmt::format("{}: fixed factors spread over {} x {} instances; there are {} x {}", place, across, down, x, y));
  }
  double most = 1;
  for (size_t d = 0; d < problem.dimensions.size(); ++d) {
    auto size = static_cast<double>(problem.dimensions[d].size);
    for (const FactorRule& rule : own.factors) {
      if (rule.dimension != static_cast<int>(d) || rule.kind == FactorRule::Kind::remaining) continue;
      size = std::min(size, static_cast<double>(rule.value));
    }
    most *= size;
  }
  const double share = most / (static_cast<double>(x) * static_cast<double>(y));
  if (share < own.least_utilization) {
    faults.push_back(fmt::format("{}: the factors use at most {:.3g} of the instances; {} are asked for", place, share,
                                 own.least_utilization));
  }
}

// Rules for one dimension: at one place, and the product over all places.
void add_product_faults(const Constraints& constraints, const Architecture& architecture, const Problem& problem,
                        int dimension, std::vector<std::string>& faults) {
  const auto& [name, size] = problem.dimensions[dimension];
  double fixed = 1;
  double most = 1;
  int remaining = 0;
  size_t bounded = 0;
  size_t places = 0;  // that could hold a loop over it
  for (size_t i = 0; i + 1 < architecture.levels.size(); ++i) {
    for (const bool spatial : {false, true}) {
      if (spatial && fanout_x(architecture, i) * fanout_y(architecture, i) == 1) continue;
      RuleRange range;
      // Loops in time at a level that keeps nothing are as good one level further out.
      if (!spatial && architecture.levels[i].kind == LevelKind::network) range.most = 1;
      for (const LoopConstraint& own : constraints.loops) {
        if (own.level != static_cast<int>(i) || own.spatial != spatial) continue;
        for (const FactorRule& rule : own.factors) {
          if (rule.dimension != dimension) continue;
          if (rule.kind == FactorRule::Kind::at_most) range.most = std::min(range.most, rule.value);
          if (rule.kind == FactorRule::Kind::remaining) range.remaining = true;
          if (rule.kind != FactorRule::Kind::exactly) continue;
          if (range.fixed != 0 && range.fixed != rule.value) {
            faults.push_back(fmt::format("{}: {} is fixed to both {} and {}", place_of(own, architecture), name,
                                         range.fixed, rule.value));
          }
          range.fixed = rule.value;
        }
      }
      const std::string place = fmt::format("{} ({})", architecture.levels[i].name, spatial ? "spatial" : "temporal");
      if (range.fixed > range.most && architecture.levels[i].kind != LevelKind::network) {
        faults.push_back(fmt::format("{}: {} = {} but also at most {}", place, name, range.fixed, range.most));
      }
      if (range.fixed != 0 && range.remaining) {
        faults.push_back(fmt::format("{}: {} = {} but also all that remains", place, name, range.fixed));
      }
      ++places;
      remaining += range.remaining ? 1 : 0;
      if (range.fixed != 0) fixed *= static_cast<double>(range.fixed);
      if (range.fixed == 0 && range.most == max_dimension_size) continue;
      ++bounded;
      most *= static_cast<double>(range.fixed != 0 ? range.fixed : range.most);
    }
  }
  if (remaining > 1) faults.push_back(fmt::format("{}: more than one level takes all that remains", name));
  if (bounded == places && most < static_cast<double>(size)) {
    faults.push_back(fmt::format("{}: the factors allowed make {} at most; its size is {}", name, most, size));
  }
  // The next multiple would leave whole iterations of a fixed loop without work.
  if (fixed >= 2 * static_cast<double>(size)) {
    faults.push_back(fmt::format("{}: fixed factors make {}; its size is {}", name, fixed, size));
  }
}

void add_keep_faults(const Constraints& constraints, const Architecture& architecture, const Problem& problem,
                     std::vector<std::string>& faults) {
  for (size_t i = 0; i < constraints.storage.size(); ++i) {
    const KeepConstraint& own = constraints.storage[i];
    const AcceleratorLevel& level = architecture.levels[own.level];
    const std::string& tensor = problem.tensors[own.tensor].name;
    if (own.keep && level.kind == LevelKind::network) {
      faults.push_back(fmt::format("{} is a network and cannot keep {}", level.name, tensor));
    }
    for (size_t j = i + 1; j < constraints.storage.size(); ++j) {
      const KeepConstraint& other = constraints.storage[j];
      if (other.level == own.level && other.tensor == own.tensor && other.keep != own.keep) {
        faults.push_back(fmt::format("{} must keep {} and must let it pass by", level.name, tensor));
      }
    }
  }
  for (size_t t = 0; t < problem.tensors.size(); ++t) {
    bool may_be_kept = false;
    for (size_t i = 0; i + 1 < architecture.levels.size(); ++i) {
      bool bypassed = architecture.levels[i].kind == LevelKind::network;
      for (const KeepConstraint& own : constraints.storage) {
        bypassed = bypassed || (own.level == static_cast<int>(i) && own.tensor == static_cast<int>(t) && !own.keep);
      }
      may_be_kept = may_be_kept || !bypassed;
    }
    if (!may_be_kept) faults.push_back(fmt::format("no level may keep {}", problem.tensors[t].name));
  }
}

// Tiles that the fixed factors alone already make.
void add_fixed_tile_faults(const Constraints& constraints, const Architecture& architecture, const Problem& problem,
                           std::vector<std::string>& faults) {
  for (size_t i = 0; i + 1 < architecture.levels.size(); ++i) {
    const auto held = static_cast<double>(words_held(architecture.levels[i]));
    if (held == 0) continue;
    TileSizes tile;
    tile.fill(1);
    for (const LoopConstraint& own : constraints.loops) {
      if (own.level < static_cast<int>(i)) continue;
      for (const FactorRule& rule : own.factors) {
        if (rule.kind == FactorRule::Kind::exactly) tile[rule.dimension] *= static_cast<double>(rule.value);
      }
    }
    for (size_t d = 0; d < problem.dimensions.size(); ++d) {
      tile[d] = std::min(tile[d], static_cast<double>(problem.dimensions[d].size));
    }
    double words = 0;
    uint32_t counted = 0;
    for (const KeepConstraint& own : constraints.storage) {
      if (own.level != static_cast<int>(i) || !own.keep || (counted >> own.tensor & 1) != 0) continue;
      counted |= 1U << own.tensor;
      const ProblemTensor& tensor = problem.tensors[own.tensor];
      words += tile_words(tensor, tile) * words_of_element(architecture, i, tensor);
    }
    if (words > held) {
      faults.push_back(fmt::format("{}: fixed factors make tiles of {} words of the tensors it must keep; it holds {}",
                                   architecture.levels[i].name, words, held));
    }
  }
}

// A tensor that passes by the outermost level lives further in, where no loop outside may move it.
void add_homeless_faults(const Constraints& constraints, const Architecture& architecture, const Problem& problem,
                         std::vector<std::string>& faults) {
  for (size_t t = 0; t < problem.tensors.size(); ++t) {
    const auto says = [&](int level, bool keep) {
      return std::ranges::any_of(constraints.storage, [&](const KeepConstraint& own) {
        return own.tensor == static_cast<int>(t) && own.level == level && own.keep == keep;
      });
    };
    if (!says(0, false)) continue;
    bool may_live = false, lives = false;
    for (int level = 1; level + 1 < std::ssize(architecture.levels); ++level) {
      may_live = may_live || !says(level, false);
      lives = lives || says(level, true);
    }
    if (lives || !may_live) continue;
    faults.push_back(fmt::format("{} must pass by {}, the outermost level, and no level further in must keep it",
                                 problem.tensors[t].name, architecture.levels.front().name));
  }
}

}  // namespace

std::vector<std::string> constraint_faults(const Constraints& constraints, const Architecture& architecture,
                                           const Problem& problem) {
  std::vector<std::string> faults;
  add_reference_faults(constraints, architecture, problem, faults);
  if (!faults.empty()) return faults;
  for (const LoopConstraint& own : constraints.loops) {
    add_rule_faults(own, architecture, problem, faults);
    add_array_faults(own, architecture, problem, faults);
  }
  for (size_t d = 0; d < problem.dimensions.size(); ++d) {
    add_product_faults(constraints, architecture, problem, static_cast<int>(d), faults);
  }
  add_keep_faults(constraints, architecture, problem, faults);
  add_homeless_faults(constraints, architecture, problem, faults);
  add_fixed_tile_faults(constraints, architecture, problem, faults);
  return faults;
}

void check_constraints(const Constraints& constraints, const Architecture& architecture, const Problem& problem) {
  const auto faults = constraint_faults(constraints, architecture, problem);
  if (faults.empty()) return;
  throw InputError({.source = constraints.source,
                    .path = "constraints",
                    .expected = fmt::format("constraints that a mapping can obey: {}", fmt::join(faults, "; "))});
}

}  // namespace foretoken
