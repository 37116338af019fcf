// Step times of an engine whose tokens go through adapters: beside each adapted matrix two thin multiplies.
#pragma once

#include <memory>

#include "kernel/kernel.h"
#include "model/model.h"
#include "serving/steps/composed_steps.h"
#include "serving/steps/step_times.h"

namespace foretoken {

// One such kernel: `tokens` rows go through `adapters` matrices of n x k. `adds_to_output`: it is an expand.
struct AdapterKernel {
  int64_t n = 1, k = 1;
  Scheme scheme = Scheme::bf16;
  bool adds_to_output = false;
};
Estimate adapter_kernel_seconds(const KernelPredictor& predictor, const AdapterKernel& kernel, int64_t tokens,
                                int64_t adapters);

// `base` and, for steps with adapters, two kernels for each adapted matrix (vLLM, lora/ops/triton_ops; Punica,
// arXiv 2310.18547; S-LoRA, arXiv 2311.03285): shrink, tokens x rank, and expand, which adds to the matrix's output and
// so reads it too. Each is a batched multiply of the kernel layer with one set of weights for each adapter, tokens
// spread evenly over them, and takes no less than one of fewer adapters. Gaps between kernels are the stack's; what the
// host needs to launch them is not counted. Adapters run at `lora.rank`, the largest that has room: kernels work on
// whole slots. `base` is not owned.
//
// Engines run kernels of their own here (Triton), not the library's multiplies that the kernel layer was fitted to. On
// an H200 320 such kernels of ours (data/measured/h200_sxm/lora.csv) took 0.6 to 1.6 of the prediction for 90% of rows,
// 23% apart in the mean; the interval is that wide.
std::unique_ptr<StepTimes> lora_steps(StepTimes& base, const LoraAdapter& lora, ComposedStepsConfig config);

}  // namespace foretoken
