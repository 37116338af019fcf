#include "accelerator/systolic/fit_vector_unit.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace foretoken {
namespace {

constexpr size_t constant_count = 3;
using VectorConstants = std::array<double, constant_count>;  // launch cycles, softmax, layer norm

// Cycles that each constant stands for when it is 1.
VectorConstants cycles_per_unit(const VectorUnit& vector, const ChipWork& work) {
  return {1, work.transcendental_elements / vector.operations_per_cycle.value,
          work.layernorm_elements / vector.operations_per_cycle.value};
}

}  // namespace

// Coordinate descent on a convex quadratic of three unknowns: each is set to its best, again and again.
VectorUnit fit_vector_unit(const SystolicChip& chip, std::span<const TpuV3Row> rows) {
  ensure(chip.vector.has_value(), "there is a vector unit to fit");
  VectorUnit fitted = *chip.vector;
  SystolicChip without = chip;
  without.vector->launch_cycles.value = without.vector->softmax_operations.value =
      without.vector->layernorm_operations.value = 0;
  VectorConstants constants{fitted.launch_cycles.value, fitted.softmax_operations.value,
                            fitted.layernorm_operations.value};
  constexpr int most_rounds = 200;
  for (int round = 0; round < most_rounds; ++round) {
    for (size_t i = 0; i < constant_count; ++i) {
      double slope_squared = 0;
      double slope_residual = 0;
      for (const TpuV3Row& row : rows) {
        if (!row.why_not.empty()) continue;
        const VectorConstants units = cycles_per_unit(fitted, row.work);
        double others = chip_cycles(without, row.work).total();
        for (size_t j = 0; j < constant_count; ++j) others += j == i ? 0 : constants[j] * units[j];
        const double slope = units[i] / row.measured_cycles;
        slope_squared += slope * slope;
        slope_residual += slope * (1 - others / row.measured_cycles);
      }
      if (slope_squared > 0) constants[i] = std::max(0.0, slope_residual / slope_squared);
    }
  }
  fitted.launch_cycles.value = constants[0];
  fitted.softmax_operations.value = constants[1];
  fitted.layernorm_operations.value = constants[2];
  return fitted;
}

}  // namespace foretoken
