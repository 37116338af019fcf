// The operators of one step of a model on one rank, with the shapes they have there.
//
// Quantized linear layers are one GEMM: their measured times include the cast of the activation, so no QuantizeShape is
// emitted beside it. Attention shapes append to the KV cache themselves (writes_kv); only the latent and compressed
// forms have a kv_write of their own.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "model/model.h"
#include "model/shapes.h"
#include "model/weights.h"

namespace foretoken {

enum class StepPhase { prefill, decode, mixed, train };
std::string_view step_phase_name(StepPhase phase);
std::vector<std::string> step_phase_names();
std::optional<StepPhase> step_phase_from_name(std::string_view name);

// What a training step ends with.
//   none        gradients only
//   adam_mixed  fp32 master weights and moments beside the weights (Megatron, mixed precision)
//   adam_fused, adam_foreach  moments in the weights' own format: one kernel for all, or one for each operation
enum class Optimizer { none, adam_mixed, adam_fused, adam_foreach };

// Tokens that inference runs the head on: each sequence's last (encoders: all), all, or none (embeddings, a
// classifier).
enum class Logits { last, all, none };

struct StepRequest {
  StepPhase phase = StepPhase::decode;
  int64_t batch = 1;        // sequences: prompts (prefill), decodes, or samples (train); per data-parallel rank
  int64_t input_len = 1;    // new tokens of each prompt (prefill, train, mixed); encoder tokens of an encoder-decoder
  int64_t context_len = 0;  // tokens already in the cache: before the prompt (prefill), or history of each decode
  int64_t prompts = 0;      // mixed: how many of `batch` are prompts, the rest decode
  int64_t prompt_context_len = 0;  // mixed: tokens in the cache before each prompt
  int64_t decoder_len = 0;  // encoder-decoder: new decoder tokens of a prompt; 0 = one (inference), input_len (train)
  DType kv_dtype = DType::bf16;
  std::optional<Routing> routing = {};  // nothing = as routers usually are: step_feed_forward.cpp
  double power_law_exponent = 0;
  LoraAdapter lora;        // train: only the adapters are trained. Routed experts, routers, embeddings have none.
  bool recompute = false;  // train: run the layers' forward again in the backward pass
  Logits logits = Logits::last;
  Optimizer optimizer = Optimizer::adam_mixed;
  bool accumulate = false;  // train: gradients are added to those of earlier steps
};

// How tokens get to experts of other ranks and back: each copy to the rank of its expert (DeepEP, Megatron alltoall),
// or all tokens to all ranks and their sums back (vLLM's allgather_reducescatter, SGLang without an a2a backend,
// TensorRT-LLM's attention DP).
enum class ExpertExchange : uint8_t { all_to_all, all_gather };

// How one replica is cut, and how many there are.
//   tensor    columns then rows of each block, one all-reduce per block; KV heads are replicated beyond their number;
//             the latent cache is not cut; embedding and head by vocabulary.
//   sequence  norms on tokens/tensor; all-gather before and reduce-scatter after each block in place of the all-reduce.
//   pipeline  contiguous layers, see stage_layers(); embedding on the first stage, head on the last.
//   expert    divides `tensor`: experts lie inside the tensor group, every rank routes all tokens to the ones it holds
//   and
//             the block's all-reduce combines (vLLM without data parallelism). A multiple of `tensor`: expert/tensor
//             ranks of data x context join, each rank sends its share of the tokens (`exchange`); the shared experts
//             are not cut (vLLM with data parallelism, Megatron with expert tensor parallelism 1).
//   context   each rank has chunks r and 2c-1-r of every prompt and all-gathers K and V (Llama 3, arXiv 2407.21783,
//             section 3.3.2), so causal work is even. Decodes: all ranks run them, each on its share of the cache.
struct ParallelPlan {
  int64_t tensor = 1, pipeline = 1, data = 1, expert = 1, context = 1;
  bool sequence = false;
  ExpertExchange exchange = ExpertExchange::all_to_all;           // where `expert` is beyond `tensor`
  ExchangeKernels exchange_kernels = ExchangeKernels::by_tokens;  // with all_to_all
};

// Data-parallel ranks that share the experts, and so take every step together.
constexpr int64_t lock_step_ranks(const ParallelPlan& plan) {
  return plan.expert > plan.tensor ? plan.expert / plan.tensor : 1;
}

// Tensor-parallel ranks that share each expert.
constexpr int64_t expert_tensor_ranks(const ParallelPlan& plan) {
  return plan.tensor > plan.expert ? plan.tensor / plan.expert : 1;
}

constexpr int64_t rank_count(const ParallelPlan& plan) {
  return plan.tensor * plan.context * plan.data * plan.pipeline;
}

enum class StepPart { embedding, attention, feed_forward, experts, head, communication, optimizer };
std::string_view step_part_name(StepPart part);

struct Operator {
  std::string
      name;  // qkv_proj, attention, gate_up_proj, tp_all_reduce, ...; backward: qkv_proj_dgrad, attention_backward
  StepPart part = StepPart::attention;
  Pass pass = Pass::forward;
  int64_t count = 1;  // calls of exactly this shape in the step
  KernelShape shape;
};

// The operators that pipeline stage `stage` (0-based) runs, in order of first use; equal calls are merged into one
// entry. InputError when the plan does not fit the model (heads not divisible, more stages than layers, experts not
// divisible).
std::vector<Operator> stage_operators(const Model& model, const StepRequest& request, const ParallelPlan& plan,
                                      int64_t stage);

// The checks of stage_operators alone.
void check_step(const Model& model, const StepRequest& request, const ParallelPlan& plan);

// What speaks against a plan: "6 attention heads do not divide by it", it being one size of the plan. Sizes must be 1
// or more.
struct PlanComplaint {
  int64_t ParallelPlan::*axis = nullptr;
  std::string why;
};
std::vector<PlanComplaint> plan_complaints(const Model& model, const ParallelPlan& plan);

// fp8 weights may come with one scale for each block of 128 x 128: ranks that would hold parts of blocks cannot load
// them (vLLM and SGLang stop with an error). The sentence that says so; empty = none does.
std::string cut_scale_blocks(const Model& model, const ParallelPlan& plan);

struct LayerRange {
  int64_t first = 0, count = 0;
};
// Layers of a stage: an even split; what is left over goes one each to the stages before the last, from the back, since
// the last also has the head (vLLM, distributed/utils.py, get_pp_indices).
LayerRange stage_layers(int64_t layers, int64_t stages, int64_t stage);
std::span<const Layer> layers_of_stage(const Model& model, const ParallelPlan& plan, int64_t stage);

// Weights held by one rank of a stage, and its cache for `request` (its sequences at their final length).
struct RankMemory {
  Bytes weights;
  Bytes kv_cache;
  Bytes gradients_and_optimizer;  // train: bf16 gradients, fp32 master weights and two moments
  Bytes activations;  // largest live set of one operator and the residual stream, or (train) all saved for backward
  Bytes total() const { return weights + kv_cache + gradients_and_optimizer + activations; }
};
RankMemory rank_memory(const Model& model, const StepRequest& request, const ParallelPlan& plan, int64_t stage);

// The same cache by layer, for those who page it: what one rank keeps of one sequence in each layer of the stage.
std::vector<std::vector<CachePart>> rank_cache(const Model& model, DType kv_dtype, const ParallelPlan& plan,
                                               int64_t stage);

// Forward FLOPs of the whole model for this request, over all ranks of one replica: what MFU is measured against.
// Counts matrix multiplies, attention, experts and recurrences.
Flops model_flops(const Model& model, const StepRequest& request);

// The model with other number formats: of its linear layers, and of its routed experts (by default the same; MXFP4
// alone is a format of routed experts where there are any).
Model with_scheme(Model model, Scheme linear, std::optional<Scheme> experts = std::nullopt);

}  // namespace foretoken
