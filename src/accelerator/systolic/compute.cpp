#include "accelerator/systolic/compute.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/range.h"

namespace foretoken {

SystolicProjection project(Dataflow dataflow, const GemmSize& gemm) {
  check_single_gemm(gemm);
  switch (dataflow) {
    case Dataflow::output_stationary:
      return {.rows = gemm.m, .columns = gemm.n, .steps = gemm.k};
    case Dataflow::weight_stationary:
      return {.rows = gemm.k, .columns = gemm.n, .steps = gemm.m};
    case Dataflow::input_stationary:
      return {.rows = gemm.k, .columns = gemm.m, .steps = gemm.n};
  }
  ensure(false, "a dataflow is one of three");
  return {};
}

int64_t fold_cycles(const SystolicArray& array, int64_t steps) {
  const int64_t load = array.dataflow == Dataflow::output_stationary ? 0 : array.rows;
  return load + steps + array.rows + array.columns - 2;
}

SystolicCompute systolic_compute(const SystolicArray& array, const GemmSize& gemm) {
  check_array(array);
  check_layer(as_layer(gemm));
  const SystolicProjection shape = project(array.dataflow, gemm);
  SystolicCompute result{.row_folds = ceil_quotient(shape.rows, array.rows),
                         .column_folds = ceil_quotient(shape.columns, array.columns),
                         .cycles_per_fold = fold_cycles(array, shape.steps)};
  const int64_t folds = result.row_folds * result.column_folds;
  const double cycles = static_cast<double>(folds) * static_cast<double>(result.cycles_per_fold);
  if (cycles > static_cast<double>(largest_exact_integer)) {
    throw InputError(
        {.path = "gemm", .value = fmt::format("{:.3g} cycles", cycles), .expected = "at most 2^53 cycles"});
  }
  result.cycles = folds * result.cycles_per_fold - 1;

  const double cells = static_cast<double>(array.rows) * static_cast<double>(array.columns);
  const double macs = static_cast<double>(gemm.m) * static_cast<double>(gemm.n) * static_cast<double>(gemm.k);
  result.overall_utilisation = result.cycles > 0 ? macs / (static_cast<double>(result.cycles) * cells) : 1;
  result.mapping_efficiency =
      static_cast<double>(shape.rows) * static_cast<double>(shape.columns) / (static_cast<double>(folds) * cells);
  const bool os = array.dataflow == Dataflow::output_stationary;
  const int64_t reported_cycles = result.cycles_per_fold + (os ? 0 : array.columns - 1);
  result.compute_utilisation =
      result.mapping_efficiency * static_cast<double>(shape.steps) / static_cast<double>(reported_cycles);

  const bool is = array.dataflow == Dataflow::input_stationary;
  const bool ws = array.dataflow == Dataflow::weight_stationary;
  result.input_reads = gemm.m * gemm.k * (is ? 1 : result.column_folds);
  result.weight_reads = gemm.k * gemm.n * (ws ? 1 : os ? result.row_folds : result.column_folds);
  result.output_writes =
      os ? gemm.m * gemm.n + folds * (array.rows + array.columns) : gemm.m * gemm.n * result.row_folds;
  return result;
}

}  // namespace foretoken
