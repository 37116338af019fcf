// Everything a training configuration may say; nothing where it does not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "training/training_plan.h"

namespace foretoken {

struct SaidSettings {
  // The model.
  std::optional<std::string> model_name;
  std::optional<int64_t> layers, hidden, heads, kv_heads, head_dim, ffn, vocabulary, sequence_length;
  std::optional<int64_t> positions;            // rows of learned positions, where they are not the sequence
  std::optional<int64_t> vocabulary_multiple;  // the vocabulary is padded to a multiple of it and of the tensor ranks
  std::optional<int64_t> experts, top_k, expert_ffn, shared_ffn, dense_layers, draft_layers;
  std::optional<bool> gated, learned_positions, tied_embeddings, biases, layer_norm, qk_norm, latent_attention;

  // Who holds what.
  std::optional<int64_t> nodes, devices_per_node;
  std::optional<int64_t> devices;         // of all nodes together
  std::optional<int64_t> sharded_copies;  // of the model, each sharded over its part of the replicas (HSDP)
  std::optional<int64_t> tensor, pipeline, context, expert, virtual_stages, layers_per_virtual_stage;
  std::optional<int64_t> expert_tensor;  // ranks that cut each expert
  std::optional<int64_t> first_stage_layers, last_stage_layers;
  std::optional<bool> sequence_parallel, embedding_in_split, loss_in_split;
  std::optional<ContextExchange> context_exchange;
  std::optional<TokenDispatcher> dispatcher;
  std::optional<Sharding> sharding;
  std::optional<int64_t> shard_ranks;
  std::optional<bool> overlaps_gradients;  // their reduction runs beside the backward pass
  std::optional<bool> overlaps_parameters, overlaps_tensor, overlaps_experts;  // nothing = as runs of the stack do
  std::optional<double> optimizer_offload_fraction;                            // of its state, where it is offloaded
  std::optional<bool> offloads_optimizer, offloads_parameters, offloads_activations;

  // The step.
  std::optional<int64_t> micro_batch, global_batch, accumulation;
  std::optional<std::string> schedule;  // a name of pipeline_schedule_names()
  std::optional<bool> hidden_dropout, attention_dropout;
  std::optional<bool> packed;  // sequences are filled with several documents
  std::optional<Recompute> recompute;
  std::optional<LayerModules> recompute_modules;
  std::optional<int64_t> recompute_layers;
  std::optional<int64_t> lora_rank;  // adapters are trained in place of the weights
  std::optional<bool> lora_on_attention, lora_on_mlp;
  std::optional<std::string> base_weights;  // a name of base_weight_names()
  std::optional<std::string> optimizer;     // a name of optimizer_state_names()
  std::optional<bool> clips_gradients;      // by their norm
  std::optional<double> gradient_bytes;     // of each, as they are summed and travel
  std::optional<std::string> precision;     // a name of training_recipes()
  std::optional<double> logit_bytes;        // in memory at the loss, for each logit
  std::optional<bool> fp8_gathers;          // sharded parameters travel in fp8
  std::optional<int64_t> recompute_every;   // full: every so many layers
  std::optional<bool> compiled;             // torch.compile makes the layers' kernels
  std::optional<bool>
      keeps_master_weights;          // the software has an fp32 copy of weights in 16 bits, however it loads them
  std::optional<std::string> stack;  // built-in training software that runs such files
};

}  // namespace foretoken
