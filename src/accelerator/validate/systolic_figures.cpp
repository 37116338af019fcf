#include "accelerator/systolic/scalesim_cases.h"
#include "accelerator/systolic/tpu_v1_counters.h"
#include "accelerator/systolic/tpuv3_rows.h"
#include "accelerator/validate/validate_accelerator.h"

namespace foretoken {

std::vector<AcceleratorFigure> scalesim_figures_of(const AcceleratorCaseFile& file) {
  std::vector<AcceleratorFigure> figures;
  for (const ScaleSimCase& own : read_scalesim_cases(file.path)) {
    if (!own.why_not.empty()) {
      figures.push_back({.case_id = own.id, .why_not = own.why_not});
      continue;
    }
    const SystolicFigures predicted = scalesim_figures(simulate_systolic(own.array, own.layer));
    for (const auto& [name, expected] : own.expected) {
      const auto found = predicted.find(name);
      if (found != predicted.end()) figures.push_back({own.id, name, expected, found->second});
    }
  }
  return figures;
}

std::vector<AcceleratorFigure> tpu_v1_figures(const AcceleratorCaseFile& file) {
  const SystolicChip chip = read_systolic_chip(file.shipped / "systolic" / "tpu_v1.json");
  std::vector<AcceleratorFigure> figures;
  for (const TpuV1Workload& own : read_tpu_v1_figures(file.path, chip).workloads) {
    const WeightFedRun run = run_weight_fed(chip, own.parts);
    figures.push_back({own.name, "tops", own.counted_tops, run.rate.value() / 1e12});
  }
  return figures;
}

std::vector<AcceleratorFigure> tpu_v3_figures(const AcceleratorCaseFile& file) {
  const SystolicChip chip = read_systolic_chip(file.shipped / "systolic" / "tpu_v3.json");
  std::vector<AcceleratorFigure> figures;
  for (const TpuV3Row& row : read_tpuv3_rows(file.path)) {
    if (!row.why_not.empty()) {
      figures.push_back({.case_id = row.workload, .why_not = row.why_not});
      continue;
    }
    figures.push_back({row.workload, "cycles", row.measured_cycles, chip_cycles(chip, row.work).total()});
  }
  return figures;
}

}  // namespace foretoken
