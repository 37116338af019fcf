// How an engine lays out routed experts of four-bit weights in memory, where that takes more than the checkpoint does.
#pragma once

#include <cstdint>

#include "base/units.h"
#include "hardware/device.h"
#include "model/model.h"
#include "model/step.h"

namespace foretoken {

struct ExpertLayout {
  // Multiples that the hidden size, and what a rank has of an expert's width, are padded to.
  int64_t hidden = 1, width = 1;
  // Rows of the scales' second copy, in the order in which the kernel reads them, are padded to this; 0 = no such copy.
  int64_t scale_rows = 0;
  bool drops_read_scales = true;  // the checkpoint's scales are freed once they are copied
  bool wide_biases = false;       // in 32 bits

  bool operator==(const ExpertLayout&) const = default;
};

// vLLM's, by the kernel that it picks for MXFP4 experts on the device (layers/quantization/mxfp4.py and
// layers/fused_moe/oracle/mxfp4.py; FlashInfer's on Blackwell, Triton's for gpt-oss on Hopper, Marlin elsewhere). The
// wheels brought Triton's kernels since 0.12, and the checkpoint's scales stay beside the copies until 0.24.
ExpertLayout vllm_experts_before_012(const Model& model, const Device& device);
ExpertLayout vllm_experts_before_025(const Model& model, const Device& device);
ExpertLayout vllm_experts(const Model& model, const Device& device);

// What the layout adds to the weights of a rank of this pipeline stage. Nothing where experts are in other formats.
Bytes expert_layout_bytes(const Model& model, const ParallelPlan& plan, int64_t stage, const ExpertLayout& layout);

}  // namespace foretoken
