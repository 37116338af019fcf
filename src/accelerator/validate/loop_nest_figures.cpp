#include <cmath>

#include "accelerator/evaluator.h"
#include "accelerator/mapping_text.h"
#include "accelerator/validate/loop_nest_cases.h"
#include "accelerator/validate/validate_accelerator.h"
#include "base/error.h"

namespace foretoken {
namespace {

// Means over instances are printed without their fraction.
double printed(double words) {
  return std::floor(words + 1e-9);
}

Evaluation evaluated_case(const LoopNestCase& own, const JsonView& document) {
  const std::vector<std::string> faults = mapping_faults(own.mapping, own.architecture, own.problem);
  if (!faults.empty()) {
    throw InputError(
        {.source = document.source(), .path = own.id, .expected = "a mapping that fits: " + faults.front()});
  }
  Evaluation result;
  ensure(MappingEvaluator(own.architecture, own.problem, timeloop_3_0_3_rules).evaluate(own.mapping, result),
         "a mapping without faults is evaluated");
  return result;
}

void add_case(const LoopNestCase& own, const JsonView& document, std::vector<AcceleratorFigure>& figures) {
  const Evaluation result = evaluated_case(own, document);
  figures.push_back({own.id, "cycles", own.cycles, result.cycles});
  figures.push_back({own.id, "energy_pj", own.energy_pj, timeloop_3_0_3_energy_pj(result, own.architecture)});
  for (const ExpectedTraffic& expected : own.traffic) {
    const int level = find_level(own.architecture, expected.level);
    const int tensor = find_tensor(own.problem, expected.tensor);
    if (level < 0 || tensor < 0) continue;
    const TensorTraffic& counted = traffic_at(result, own.problem, level, tensor);
    const auto add = [&](const char* name, double wanted, double words) {
      figures.push_back({own.id, expected.level + "." + expected.tensor + "." + name, wanted, printed(words)});
    };
    add("words", expected.utilized_words, counted.tile_words);
    add("instances", expected.instances, counted.instances);
    add("reads", expected.reads, counted.reads);
    add("fills", expected.fills, counted.fills);
    add("updates", expected.updates, counted.updates);
  }
}

}  // namespace

std::vector<AcceleratorFigure> loop_nest_figures(const AcceleratorCaseFile& file) {
  std::vector<AcceleratorFigure> figures;
  for (const LoopNestCase& own : read_loop_nest_cases(*file.document)) add_case(own, *file.document, figures);
  return figures;
}

}  // namespace foretoken
