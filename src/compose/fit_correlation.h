// Measured steps -> how the errors of their kernels go together.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "compose/step_estimate.h"
#include "kernel/error_correlation.h"

namespace foretoken {

// One measured step: how far the kernels' sum was off, and the widths of its kernels on that side.
struct CorrelationSample {
  double error = 0;  // |measured - predicted|, seconds
  struct Form {
    std::string name;
    double linear = 0, squares = 0;  // sums of half-widths and of their squares
  };
  std::vector<Form> forms;
};

// The kernels' sum that was measured: the profiler's where the host launched them, whose own time varies; else the step
// less the gaps predicted for it (a profiler stretches the kernels of a graph).
// `measured_kernel_ms`: 0 = not given.
CorrelationSample correlation_sample(const StepEstimate& predicted, double measured_ms, double measured_kernel_ms);

struct CorrelationFit {
  ErrorCorrelations correlations;
  size_t steps = 0;  // those with a width
  // Percentage of the steps whose sum lies in the 90% interval: were errors independent, with the fitted correlations,
  // were they all alike.
  double independent = 0, fitted = 0, alike = 0;
};

// The most likely correlations if errors are normal, on a grid of 0.05, with a weak pull towards 0.4 that decides where
// the steps do not: forms in fewer than five steps are left out, and so are steps whose kernels have no width.
// InputError when no form is left.
CorrelationFit fit_correlations(std::span<const CorrelationSample> measured);

}  // namespace foretoken
