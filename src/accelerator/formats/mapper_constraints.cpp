#include "accelerator/formats/mapper_constraints.h"

#include <algorithm>

#include "base/error.h"

namespace foretoken {
namespace {

std::vector<FactorRule> factor_rules(const TimeloopDirective& directive, const Problem& problem) {
  std::vector<FactorRule> rules;
  for (const TimeloopFactor& factor : directive.factors) {
    if (factor.last) fail_directive(directive, factor.dimension, "a factor without a remainder in a constraint");
    FactorRule rule{.dimension = directive_dimension(directive, factor.dimension, problem), .value = factor.bound};
    // As Timeloop does, so that the constraints of a design serve smaller problems.
    rule.value = std::min(rule.value, problem.dimensions[rule.dimension].size);
    rule.kind = factor.bound == 0                                      ? FactorRule::Kind::remaining
                : factor.relation == TimeloopFactor::Relation::at_most ? FactorRule::Kind::at_most
                                                                       : FactorRule::Kind::exactly;
    rules.push_back(rule);
  }
  return rules;
}

void add_storage(const TimeloopDirective& directive, int level, const Problem& problem, Constraints& constraints) {
  const auto add = [&](const std::vector<std::string>& names, bool keep) {
    for (const std::string& name : names) {
      constraints.storage.push_back(
          {.level = level, .tensor = directive_tensor(directive, name, problem), .keep = keep});
    }
  };
  add(directive.keep, true);
  add(directive.bypass, false);
}

// A design serves problems whose tensors have other names, so the usual ones pass; a misspelt one does not.
void check_tensor_names(const AcceleratorDesign& design, size_t level, const Problem& problem) {
  std::vector<std::string> known = {"inputs", "weights", "outputs", "Inputs", "Weights", "Outputs", "A", "B", "Z"};
  for (const ProblemTensor& tensor : problem.tensors) known.push_back(tensor.name);
  const LevelTensors& own = design.tensors[level];
  for (const auto* names : {&own.keep, &own.bypass}) {
    for (const std::string& name : *names) {
      const bool twice =
          names == &own.keep && std::find(own.bypass.begin(), own.bypass.end(), name) != own.bypass.end();
      if (!twice && std::find(known.begin(), known.end(), name) != known.end()) continue;
      throw InputError({.source = design.architecture.name,
                        .path = design.architecture.levels[level].name,
                        .value = printable(name),
                        .expected = twice ? std::string("a tensor kept or passed by, not both")
                                          : std::string("inputs, weights, outputs or a tensor of the problem"),
                        .suggestion = twice ? std::string() : nearest_name(name, known).value_or("")});
    }
  }
}

// Dimensions that the array below does not spread keep their loops in time.
void add_spread(const AcceleratorDesign& design, size_t level, const Problem& problem, Constraints& constraints) {
  const uint32_t allowed = dimensions_allowed(design.tensors[level], problem);
  LoopConstraint loops{.level = static_cast<int>(level), .spatial = true};
  for (int d = 0; d < std::ssize(problem.dimensions); ++d) {
    if ((allowed >> d & 1) == 0 && problem.dimensions[d].size > 1) {
      loops.factors.push_back({.dimension = d, .kind = FactorRule::Kind::at_most});
    }
  }
  if (!loops.factors.empty()) constraints.loops.push_back(std::move(loops));
}

}  // namespace

Constraints design_constraints(const AcceleratorDesign& design, const Problem& problem) {
  Constraints constraints{.source = design.architecture.name};
  for (size_t level = 0; level + 1 < design.architecture.levels.size(); ++level) {
    add_spread(design, level, problem, constraints);
    if (design.architecture.levels[level].kind != LevelKind::storage) continue;
    check_tensor_names(design, level, problem);
    const uint32_t allowed = tensors_allowed(design.tensors[level], problem);
    const bool lists = !design.tensors[level].keep.empty();
    for (size_t tensor = 0; tensor < problem.tensors.size(); ++tensor) {
      const bool may = (allowed >> tensor & 1) != 0;
      if (may && !lists) continue;
      constraints.storage.push_back(
          {.level = static_cast<int>(level), .tensor = static_cast<int>(tensor), .keep = may});
    }
  }
  return constraints;
}

Constraints directive_constraints(std::span<const TimeloopDirective> directives, const Architecture& architecture,
                                  const Problem& problem) {
  Constraints constraints;
  for (const TimeloopDirective& directive : directives) {
    if (constraints.source.empty()) constraints.source = directive.source;
    const int level = directive_level(directive, architecture);
    if (directive.kind == TimeloopDirective::Kind::dataspace) {
      add_storage(directive, level, problem, constraints);
      continue;
    }
    std::optional<int> split = directive.split;
    // More than all dimensions is all of them.
    if (split) split = std::min(*split, static_cast<int>(problem.dimensions.size()));
    LoopConstraint loops{.level = level,
                         .spatial = directive.kind != TimeloopDirective::Kind::temporal,
                         .factors = factor_rules(directive, problem),
                         .permutation = directive_permutation(directive, problem),
                         .split = split,
                         .least_utilization = directive.min_utilization.value_or(0)};
    constraints.loops.push_back(std::move(loops));
  }
  return constraints;
}

}  // namespace foretoken
