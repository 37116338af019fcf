// A profiled step on another GPU, after Habitat (Yu et al., "Habitat: A Runtime-Based Computational Performance
// Predictor for Deep Neural Network Training", USENIX ATC 2021): what was measured, times the ratio of our estimates of
// the same kernel on both GPUs. Whatever the estimates get wrong on both GPUs alike cancels.
#pragma once

#include <string>
#include <vector>

#include "base/estimate.h"
#include "compose/profile/trace.h"
#include "kernel/kernel.h"

namespace foretoken {

// What the factor of a kernel rests on.
enum class PortBasis {
  estimates,  // of this kernel on both GPUs: the trace has its sizes
  sheet,      // the two GPUs' peak rates or bandwidths, by class of kernel
  kept,       // communication, and copies from and to the host: neither GPU decides them
};
std::string_view port_basis_name(PortBasis basis);

struct PortedClass {
  std::string name;  // multiply (torch_linear), elementwise (torch_add), ...
  PortBasis basis = PortBasis::kept;
  size_t kernels = 0;
  double measured_us = 0;
  Estimate ported_us;
};

struct PortedTrace {
  std::vector<PortedClass> classes;  // longest measured time first, then by name
  size_t kernels = 0;
  double measured_us = 0;       // sum of all kernels
  double measured_span_us = 0;  // from the first launch to the last kernel's end
  Estimate ported_us;           // likewise, on the other GPU
  Estimate ported_span_us;      // the host launches as it did
  // Kernels whose sizes are known, on the GPU of the trace: a check of the estimates that the factors are made of.
  double sized_measured_us = 0, sized_predicted_us = 0;

  double measured_us_by(PortBasis basis) const;
};

// `from` is the GPU that was profiled. InputError as from chakra_from_profile(): kernels wait for each other as there.
PortedTrace port_trace(const ProfiledStep& step, const KernelPredictor& from, const KernelPredictor& to);

}  // namespace foretoken
