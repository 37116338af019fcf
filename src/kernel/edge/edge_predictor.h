// Times of fused kernels and of whole models on one device with one runtime, from the prices that a sweep of it gave.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/estimate.h"
#include "kernel/edge/edge_laws.h"

namespace foretoken {

// What one sweep says about one kind of kernel.
struct EdgeKindPrices {
  std::vector<double> prices_ns;    // in the order of the kind's law
  std::vector<double> least, most;  // amounts seen, in the same order; zeros left out of `least`
  size_t rows = 0;
  double half_width = 0;                // of the 90% interval, as a logarithm, from rows that were left out of a fit
  double cross_validated_mape = 0;      // percent
  double cross_validated_coverage = 0;  // percent of such rows inside intervals that they had no part in
  bool operator==(const EdgeKindPrices&) const = default;
};

// What a sweep of whole calls, each a model of one kernel, holds beside the kernels. Nothing where kernels were timed
// by themselves.
struct EdgeCallCosts {
  double node_ns = 0;                        // the runtime's own time for one operator of a model
  double setup_ns = 0;                       // and what it takes beyond that for one that multiplies
  double copy_near_ns = 0, copy_far_ns = 0;  // the copy of an output element that a caller is handed
  bool operator==(const EdgeCallCosts&) const = default;
};

// How much sooner the kernels of a kind are done on so many threads than on those of the sweep. Threads that have to be
// woken cost time, and a runtime leaves kernels that are too small for that to one of them.
struct EdgeSpeedup {
  double times = 1;
  double wait_ns = 0;
  double half_width = 0;  // of the 90% interval of single kernels, as a logarithm
  bool operator==(const EdgeSpeedup&) const = default;
  double seconds(double on_one) const { return std::min(on_one, on_one / times + wait_ns * 1e-9); }
};

struct EdgeThreadScaling {
  int threads = 1;
  std::map<EdgeKernelKind, EdgeSpeedup> kinds;
  bool operator==(const EdgeThreadScaling&) const = default;
};

// A part of a kernel's time: an amount at its price.
struct EdgeTerm {
  std::string_view name, reading;  // of the price: "tile", and what one unit of it is
  double seconds = 0;
};

struct EdgePredictor {
  std::string device, runtime, runtime_version;
  int threads = 1;
  std::string source, fitted_on;  // of the measurements; date
  EdgeCore core;
  std::optional<double> busy_watts;  // what the device draws while it computes
  double host_spread = 0;  // of whole networks on other hosts of its kind: half of a 90% interval, as a logarithm
  std::optional<EdgeCallCosts> calls;             // where each row of the sweep was a call of the runtime from outside
  std::vector<EdgeThreadScaling> thread_scaling;  // measured, by threads
  std::map<EdgeKernelKind, EdgeKindPrices> kinds;
  double cross_validated_mape = 0, cross_validated_coverage = 0;  // percent, over all rows

  // Whether the sweep measured its kind, or one that can stand in for it.
  bool knows(const EdgeKernel& kernel) const;

  // Null where so many threads were not measured.
  const EdgeThreadScaling* scaling_to(int64_t with_threads) const;

  // Of a kind, or of the one that stands in for it; null where neither was measured.
  static const EdgeSpeedup* speedup_of(const EdgeThreadScaling& scaling, EdgeKernelKind kind);

  // Of one kernel called by itself, the runtime's call included. A tensor operation whose kind the sweep lacks is
  // priced as the bytes it moves; a kernel that it does not know is an InputError.
  Estimate kernel_seconds(const EdgeKernel& kernel) const;

  // What that consists of, the call first; as many terms as the law has prices. `touched_between` as below.
  std::vector<EdgeTerm> kernel_terms(const EdgeKernel& kernel, double touched_between = 0) const;

  // Of the kernel between others of a model: no call, no copy of its output, the runtime's time for its operators.
  // `touched_between`: bytes of constants that the model reads before it reads those of this kernel again.
  Estimate kernel_seconds_in_model(const EdgeKernel& kernel, double touched_between = 0) const;

  // Of that, the runtime's own time.
  double dispatch_seconds(const EdgeKernel& kernel, double touched_between = 0) const;

  // How many times as long the runtime takes to start an operator whose code and descriptors were pushed out of the
  // core's own cache meanwhile. 1 for kernels that were timed by themselves.
  double start_times(double touched_between) const;

  bool operator==(const EdgePredictor&) const = default;
};

}  // namespace foretoken
