// What an engine finds when it tries out its largest step before it sizes the KV cache, and what CUDA takes beside it.
#pragma once

#include <cstdint>

#include "base/estimate.h"
#include "compose/serving_engine.h"
#include "hardware/device.h"
#include "model/step.h"

namespace foretoken {

enum class PeakMoment { forward, sampling };

// Bytes that PyTorch holds at most beyond the weights, on one rank of a stage. Two moments compete:
//   forward   max_num_batched_tokens tokens in the widest layer: the operator's inputs and outputs, three and a half
//             copies of the residual stream, and between pipeline stages the tensors handed on
//   sampling  (last stage) the logits of max_num_seqs sequences: as computed, in fp32, as probabilities, as random
//             numbers; a row per multiprocessor for top-k and top-p; the last hidden states
// The buffers of routed experts and the matrix library's workspace stay through both.
// (vLLM 0.19, v1/worker/gpu_model_runner.py, profile_run and _dummy_sampler_run; v1/sample/sampler.py.)
struct ProfileRun {
  Estimate peak_bytes;
  PeakMoment moment = PeakMoment::forward;
};
ProfileRun profile_run(const Model& model, const Device& device, const ParallelPlan& plan, int64_t stage,
                       const EngineFlags& resolved_flags);

// Cosine and sine tables of rotary positions, which engines keep with the weights: one per kind of rotation.
Bytes rotary_table_bytes(const Model& model);

// Device memory outside PyTorch that appears between start and the end of the profile run: loaded kernels, their
// stack, buffers of collectives.
Estimate runtime_bytes(const Device& device, const ParallelPlan& plan, int64_t stage);

// The CUDA context itself, there before an engine looks at the memory.
Estimate context_bytes(const Device& device);

// Of all captured graphs on one rank of a stage.
Estimate graph_bytes(const Model& model, const ParallelPlan& plan, int64_t stage, const EngineFlags& resolved_flags);

}  // namespace foretoken
