// Cycles, utilisation and SRAM accesses of a GEMM on a systolic array, in closed form and without allocation.
#pragma once

#include <cstdint>

#include "accelerator/systolic/array.h"

namespace foretoken {

// The GEMM as the array sees it: `rows` and `columns` are laid out over the array in folds, `steps` stream through.
struct SystolicProjection {
  int64_t rows = 1;
  int64_t columns = 1;
  int64_t steps = 1;
};

// os: m x n over k;  ws: k x n over m;  is: k x m over n.
SystolicProjection project(Dataflow dataflow, const GemmSize& gemm);

// Cycles of one fold, from its first operand to its last output:
// os: steps + rows + columns - 2;  ws and is: `rows` more to load what stays (SCALE-Sim, arXiv:1811.02883, section 3).
int64_t fold_cycles(const SystolicArray& array, int64_t steps);

struct SystolicCompute {
  int64_t row_folds = 0;
  int64_t column_folds = 0;
  int64_t cycles_per_fold = 0;
  int64_t cycles = 0;              // index of the last one, counted from 0, as SCALE-Sim reports it
  double overall_utilisation = 0;  // MACs / (cycles x cells)
  double mapping_efficiency = 0;   // cells with work, average over folds
  double compute_utilisation = 0;  // as SCALE-Sim reports it: its ws and is folds count `columns - 1` cycles too many
  int64_t input_reads = 0;         // of SRAM, in words; positions past the edge of an input count too
  int64_t weight_reads = 0;
  int64_t output_writes = 0;  // os: SCALE-Sim adds rows + columns for every fold
};

// InputError for sizes that check_array or check_layer refuse.
SystolicCompute systolic_compute(const SystolicArray& array, const GemmSize& gemm);

}  // namespace foretoken
