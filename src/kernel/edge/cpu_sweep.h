// A sweep of this machine's CPU: which kernels to time, and how. Who runs them is up to the caller.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "kernel/edge/edge_predictor.h"
#include "kernel/edge/edge_rows.h"

namespace foretoken {

// Kernels of every kind that a runtime of plain operators has, over the sizes of small and middling networks.
std::vector<EdgeKernel> cpu_sweep_plan();

// How long to look at each kernel.
struct CpuSweepOptions {
  int samples = 7;
  double sample_seconds = 2e-3;  // calls are repeated within a sample until it is this long
  double most_seconds = 170;     // CPU time of the whole sweep; what is left then is not measured
  bool wall_clock = false;       // time that passes, for kernels that run on several threads
};

// A call of one kernel, ready to run; empty where the runtime has no such kernel.
using CpuCall = std::function<void()>;
using CpuCallMaker = std::function<CpuCall(const EdgeKernel&)>;
using EdgeSweepProgress = std::function<void(size_t done, size_t planned)>;

// Process CPU time of each kernel, the least of the samples, after a first call that is not counted: time that other
// processes take is left out. Rows in the order of the plan.
std::vector<EdgeRow> sweep_cpu(std::span<const EdgeKernel> plan, const CpuCallMaker& make_call,
                               const CpuSweepOptions& options, const EdgeSweepProgress& progress = {});

}  // namespace foretoken
