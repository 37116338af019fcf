#include <fmt/format.h>

#include "accelerator/pim/prim_benchmarks.h"
#include "accelerator/pim/prim_rows.h"
#include "accelerator/validate/validate_accelerator.h"

namespace foretoken {

// A case is a benchmark, so that --group-by case lists them; a figure names the run, then the phase.
std::vector<AcceleratorFigure> prim_figures(const AcceleratorCaseFile& file) {
  const PimDevice device = read_pim_device(file.shipped / "pim" / "upmem.json");
  std::vector<AcceleratorFigure> figures;
  for (const PrimRow& row : read_prim_rows(file.path)) {
    const auto kernel = prim_kernel(device, row.benchmark, row.size, row.dpus);
    if (!kernel || !pim_kernel_fits(device, *kernel)) continue;
    const PimEstimate estimate = estimate_pim(device, *kernel);
    const auto add = [&](std::string_view phase, Seconds measured, const Estimate& predicted) {
      if (measured <= Seconds(0)) return;  // the benchmark has no such phase
      figures.push_back({row.benchmark, fmt::format("{} on {} DPUs.{}", row.size, row.dpus, phase),
                         measured.value() * kilo, predicted.value * kilo});
    };
    add("kernel_ms", row.kernel, estimate.kernel);
    add("to_dpus_ms", row.to_dpus, estimate.to_dpus);
    add("from_dpus_ms", row.from_dpus, estimate.from_dpus);
    add("between_dpus_ms", row.between_dpus, estimate.between_dpus);
  }
  return figures;
}

}  // namespace foretoken
