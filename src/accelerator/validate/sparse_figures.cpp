#include "accelerator/evaluator.h"
#include "accelerator/validate/sparse_cases.h"
#include "accelerator/validate/validate_accelerator.h"
#include "base/error.h"

namespace foretoken {
namespace {

void add_sparse_case(const SparseCase& own, std::vector<AcceleratorFigure>& figures) {
  // Tiles may fit only when they are compressed.
  const Architecture roomy = without_capacities(own.architecture);
  Evaluation dense;
  if (!MappingEvaluator(roomy, own.problem, timeloop_rules).evaluate(own.mapping, dense)) {
    throw InputError({.source = own.id, .expected = "a mapping that fits the array"});
  }
  const SparseEvaluation result =
      evaluate_sparse(own.architecture, own.problem, own.mapping, dense, own.sparsity, sparseloop_rules);
  figures.push_back({own.id, "cycles", own.cycles, result.cycles});
  figures.push_back({own.id, "energy_pj", own.energy_pj, result.energy_pj});
  figures.push_back({own.id, "operations", own.operations, result.operations.actual});
  figures.push_back({own.id, "compute_cycles", own.compute_cycles, result.compute_cycles});
  figures.push_back({own.id, "compute_pj", own.compute_pj, result.compute_pj});
  for (const ExpectedSparseLevel& expected : own.levels) {
    const int level = find_level(own.architecture, expected.level);
    if (level >= 0)
      figures.push_back({own.id, expected.level + ".cycles", expected.cycles, result.levels[level].cycles});
  }
  for (const ExpectedSparseTraffic& expected : own.traffic) {
    const int level = find_level(own.architecture, expected.level);
    const int tensor = find_tensor(own.problem, expected.tensor);
    if (level < 0 || tensor < 0) continue;
    const SparseTraffic& counted = result.traffic[level * own.problem.tensors.size() + tensor];
    const std::string place = expected.level + "." + expected.tensor + ".";
    const auto add = [&](const std::string& name, const SparseAccesses& wanted, const SparseAccesses& got) {
      figures.push_back({own.id, place + name, wanted.actual, got.actual});
      figures.push_back({own.id, place + "gated_" + name, wanted.gated, got.gated});
      figures.push_back({own.id, place + "skipped_" + name, wanted.skipped, got.skipped});
    };
    add("reads", expected.reads, counted.reads);
    add("fills", expected.fills, counted.fills);
    add("updates", expected.updates, counted.updates);
    figures.push_back({own.id, place + "energy_pj", expected.energy_pj, counted.energy_pj});
  }
}

}  // namespace

std::vector<AcceleratorFigure> sparse_figures(const AcceleratorCaseFile& file) {
  std::vector<AcceleratorFigure> figures;
  for (const SparseCase& own : read_sparse_cases(*file.document)) add_sparse_case(own, figures);
  return figures;
}

}  // namespace foretoken
