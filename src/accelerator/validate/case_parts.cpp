#include "accelerator/validate/case_parts.h"

#include "base/text.h"

namespace foretoken {
namespace {

// [dimension, bound], then `last=n` for a remainder and X or Y for a spatial loop.
Loop read_case_loop(const JsonView& view, int level, const Problem& problem) {
  const auto parts = view.items();
  if (parts.size() < 2) view.fail("[dimension, bound]");
  const int dimension = find_dimension(problem, parts[0].string());
  if (dimension < 0) view.fail("a loop over a dimension of the problem");
  Loop loop{.level = level, .dimension = dimension, .bound = parts[1].integer({.least = 1})};
  loop.last = loop.bound;
  for (size_t i = 2; i < parts.size(); ++i) {
    const std::string mark = parts[i].string();
    if (mark == "X" || mark == "Y") {
      loop.kind = mark == "X" ? LoopKind::spatial_x : LoopKind::spatial_y;
    } else if (mark.starts_with("last=")) {
      const std::optional<int64_t> last = parse_integer(mark.substr(5));
      if (!last || *last < 1 || *last > loop.bound) parts[i].fail("last=n, from 1 to the bound");
      loop.last = *last;
    } else {
      parts[i].fail("X, Y or last=n");
    }
  }
  return loop;
}

}  // namespace

std::string bare_name(std::string name) {
  return name.substr(0, name.find('['));
}

int64_t integer_or(const JsonView& view, std::string_view key, int64_t otherwise) {
  const auto found = view.find(key);
  return found ? found->integer({.least = 0}) : otherwise;
}

Problem read_case_problem(const JsonView& shape, const JsonView& instance) {
  Problem problem;
  for (const JsonView& name : shape.at("dims").items()) {
    problem.dimensions.push_back({.name = name.string(), .size = integer_or(instance, name.string(), 1)});
  }
  for (const auto& [name, tensor] : shape.at("tensors").members()) {
    const bool described = tensor.is(Json::Kind::object);
    ProblemTensor own{.name = name};
    own.written = described ? tensor.at("rw").boolean() : name == "Z" || name == "Outputs";
    for (const JsonView& rank : (described ? tensor.at("proj") : tensor).items()) {
      std::vector<ProjectionTerm> terms;
      for (const JsonView& term : rank.items()) {
        const auto parts = term.items();
        if (parts.empty()) term.fail("[dimension] or [dimension, coefficient]");
        const int dimension = find_dimension(problem, parts[0].string());
        if (dimension < 0) term.fail("a dimension of `dims`");
        const int64_t coefficient = parts.size() > 1 ? integer_or(instance, parts[1].string(), 1) : 1;
        terms.push_back({.dimension = dimension, .coefficient = coefficient});
      }
      own.ranks.push_back(std::move(terms));
    }
    problem.tensors.push_back(std::move(own));
  }
  const std::string fault = problem_fault(problem);
  if (!fault.empty()) shape.fail("a problem that can be evaluated: " + fault);
  return problem;
}

Mapping read_case_mapping(const JsonView& view, const Architecture& architecture, const Problem& problem) {
  Mapping mapping;
  mapping.kept.assign(architecture.levels.size() - 1, 0);
  for (const JsonView& entry : view.items()) {
    const int level = find_level(architecture, entry.at("level").string());
    if (level < 0 || level + 1 == std::ssize(architecture.levels)) {
      entry.at("level").fail("a level of the architecture above the one that computes");
    }
    for (const auto& [name, words] : entry.at("keeps").members()) {
      const int tensor = find_tensor(problem, name);
      if (tensor < 0) entry.at("keeps").fail("tensors of the problem");
      mapping.kept[static_cast<size_t>(level)] |= 1U << tensor;
    }
    for (const JsonView& loop : entry.at("loops").items()) {
      mapping.loops.push_back(read_case_loop(loop, level, problem));
    }
  }
  return mapping;
}

}  // namespace foretoken
