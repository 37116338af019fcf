// A profiled step on another GPU or under another parallel plan. Kernels after Habitat (Yu et al., "Habitat: A
// Runtime-Based Computational Performance Predictor for Deep Neural Network Training", USENIX ATC 2021): what was
// measured, times the ratio of our estimates of the same kernel on both GPUs. Whatever the estimates get wrong on both
// GPUs alike cancels.
#pragma once

#include <string>
#include <vector>

#include "base/estimate.h"
#include "compose/profile/chakra_writer.h"
#include "compose/profile/trace.h"
#include "compose/profile/trace_plan.h"
#include "kernel/kernel.h"

namespace foretoken {

// What the factor of a kernel rests on.
enum class PortBasis {
  estimates,  // of this kernel on both GPUs: the trace has its sizes
  sheet,      // the two GPUs' peak rates or bandwidths, by class of kernel
  split,      // the share of the work that the new plan leaves to this rank
  network,    // the network's times of this message in both jobs
  kept,       // nothing changes; or communication of unknown size, and copies from and to the host
};
std::string_view port_basis_name(PortBasis basis);

struct PortedClass {
  std::string name;  // multiply (torch_linear), elementwise (torch_add), ...
  PortBasis basis = PortBasis::kept;
  bool communicates = false;
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
  Estimate bubble_us;           // of it, added for a pipeline that the trace does not have
  Estimate tensor_us;           // of it, added for the collectives of a trace without tensor parallelism
  Estimate gradients_us;        // of it, added for the gradients of a trace without data parallelism
  bool lacks_backward = false;  // nothing could be added: no kernel of the trace is known to be of a backward pass
  // Kernels whose sizes are known, on the GPU of the trace: a check of the estimates that the factors are made of.
  double sized_measured_us = 0, sized_predicted_us = 0;
  // gradients_us counts the trace as one micro-batch, because nobody said how many it has.
  bool assumes_one_micro_batch = false;

  double measured_us_by(PortBasis basis) const;
};

struct PortRequest {
  const KernelPredictor& from;  // of the GPU that was profiled
  const KernelPredictor& to;
  TraceJob recorded = {}, wanted = {};
  bool same_links = true;                 // both jobs run on the same nodes and fabric
  const ImportedChakra* graph = nullptr;  // what waits for what; null = as the step's times show
  int64_t micro_batches = 0;              // of the step, for new pipelines and new data parallelism; 0 = not given
};

// Kernels wait for each other as in chakra_from_profile(), with its InputErrors.
// A message takes the network's time under the new plan; what it took beyond the network's time in the trace was
// waiting for other ranks, and stretches as the kernels do. Stages with fewer layers have proportionally fewer kernels
// and launches; a wait for another stage grows as the bubble of 1F1B does. InputError for a plan that needs what the
// trace does not show.
PortedTrace port_trace(const ProfiledStep& step, const PortRequest& request);

}  // namespace foretoken
