// The operators of one step of a model on one rank, with the shapes they have there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/model.h"
#include "model/shapes.h"
#include "model/weights.h"

namespace foretoken {

enum class StepPhase { prefill, decode, mixed, train };

struct StepRequest {
  StepPhase phase = StepPhase::decode;
  int64_t batch = 1;         // sequences: prompts (prefill), decodes, or samples (train); per data-parallel rank
  int64_t input_len = 1;     // new tokens of each prompt (prefill, train, the prompts of mixed); encoder tokens of an encoder-decoder
  int64_t context_len = 0;   // tokens already in the cache: before the prompt (prefill), or history of each decode
  int64_t prompts = 0;       // mixed: how many of `batch` are prompts, the rest decode
  DType kv_dtype = DType::bf16;
  Routing routing = Routing::balanced;
  double power_law_exponent = 0;
  LoraAdapter lora;
  bool recompute = false;    // train: run the forward again in the backward pass
};

struct ParallelPlan {
  int64_t tensor = 1, pipeline = 1, data = 1, expert = 1, context = 1;
  bool sequence = false;     // sequence parallelism: norms on tokens/tensor, all-gather + reduce-scatter for all-reduce
  // Expert parallelism spreads experts over `expert` ranks taken from tensor x data (as vLLM does) or context x data.
};

enum class StepPart { embedding, attention, feed_forward, experts, head, communication, optimizer };
std::string_view step_part_name(StepPart part);

struct Operator {
  std::string name;          // qkv_proj, attention, mlp_down, tp_all_reduce, ...
  StepPart part = StepPart::attention;
  Pass pass = Pass::forward;
  int64_t count = 1;         // calls of exactly this shape in the step
  KernelShape shape;
};

// The operators that pipeline stage `stage` (0-based) runs, in order of first use; equal calls are merged into one entry.
// InputError when the plan does not fit the model (heads not divisible, more stages than layers, experts not divisible).
std::vector<Operator> stage_operators(const Model& model, const StepRequest& request, const ParallelPlan& plan, int64_t stage);

// Weights held by one rank of a stage, and its cache for `request` (its sequences at their final length).
struct RankMemory {
  Bytes weights;
  Bytes kv_cache;
  Bytes gradients_and_optimizer;  // train: bf16 gradients, fp32 master weights and two moments
  Bytes activations;              // largest live set of one layer (inference), or saved for backward (train)
  Bytes total() const { return weights + kv_cache + gradients_and_optimizer + activations; }
};
RankMemory rank_memory(const Model& model, const StepRequest& request, const ParallelPlan& plan, int64_t stage);

// Forward FLOPs of the whole model for this request, over all ranks: what MFU is measured against.
Flops model_flops(const Model& model, const StepRequest& request);

}  // namespace foretoken
