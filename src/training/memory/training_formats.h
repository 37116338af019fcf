// How many bytes the numbers of a training run take: weights, gradients, optimizer, and what of them lies elsewhere.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compose/training_lowering.h"
#include "model/model.h"
#include "model/part_memory.h"
#include "training/training_recipe.h"

namespace foretoken {

// What an optimizer keeps for each parameter that it changes.
struct OptimizerState {
  double master_bytes = 4;  // its own copy of the weight
  int moments = 2;
  double moment_bytes = 4;
  int orthogonal_steps = 0;  // Newton-Schulz iterations on the update of each matrix (Muon)
  double bytes() const { return master_bytes + moments * moment_bytes; }
  bool operator==(const OptimizerState&) const = default;
};
// adam, adam-bf16 (moments in bf16), adam-8bit, muon (one moment), sgd-momentum, sgd, all with fp32 master weights; and
// those of -bf16-weights, which change weights in bf16 themselves: their gradients are in bf16, moments in bf16 or 8
// bits.
std::vector<std::string> optimizer_state_names();
std::optional<OptimizerState> optimizer_state_from_name(std::string_view name);
std::optional<std::string> optimizer_state_name(const OptimizerState& state);  // nothing: it has none
// The same optimizer where weights in 16 bits are changed themselves: no copy, moments in 16 bits at most.
OptimizerState of_weights_in_16_bits(OptimizerState state);

struct TrainingFormats {
  double weight_bytes = 2;    // of trained weights; FP8 storage: 1, and 1 more with a transposed copy (Hopper)
  double gradient_bytes = 4;  // Megatron's fp32 main gradients; 2 where they stay in the weights' format
  double logit_bytes = 4;     // at the loss
  OptimizerState optimizer;
  LoraAdapter lora;                // rank > 0: only the adapters are trained
  double frozen_weight_bytes = 2;  // of linear layers of the base under adapters: 1 for FP8, about 0.5 for 4-bit
  SavedTensors saved;
  double offloaded_optimizer = 0;    // share of the optimizer's state in host memory
  bool offloads_gradients = false;   // sharded gradients go there with it as they are made (DeepSpeed, FSDP)
  double offloaded_activations = 0;  // share of the activations there
  double offloaded_parameters = 0;   // share of the weights there; layers come to the device one after the other
  bool keeps_gathered_in_pipelines = false;  // as TrainingStack
  bool frees_gradients = false;              // as TrainingStack
};

// Formats of a frozen base under adapters: "bf16", "fp8", "int8", "nf4" (QLoRA, arXiv 2305.14314: 4 bits, and scales of
// 64 values quantized once more, 0.127 bits).
std::vector<std::string> base_weight_names();
std::optional<double> base_weight_bytes(std::string_view name);

// What a stack usually does: trained weights in 16 bits, a frozen base as the recipe multiplies it. Masks of dropout
// are kept where it is asked for, those of activations and of scores together; fused attention keeps no mask of its
// own.
TrainingFormats usual_formats(const TrainingRecipe& recipe, const LoraAdapter& lora, AttentionKernel attention,
                              const Dropout& dropout = {});

}  // namespace foretoken
