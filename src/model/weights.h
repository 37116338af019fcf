// The weight tensors of a model, and what they and the KV cache take in memory. Parameter counts, memory and the GEMMs
// of a step all come from this one list.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "model/model.h"

namespace foretoken {

// How tensor parallelism cuts a matrix: by its outputs (by copies where it has several), by its inputs, by expert, by
// rows of a vocabulary table, or not at all.
enum class Cut { columns, rows, experts, vocabulary, none };

// Names of the matrices (N x K); every bias is `<matrix>_bias`, vectors are norms, sinks and the like.
//   attention   qkv_proj o_proj [q_norm k_norm sinks]; with block-sparse attention indexer_q_proj indexer_k_proj
//   latent      q_proj, or q_a_proj q_b_proj; kv_a_proj kv_b_proj o_proj [output_gate_proj]
//               [indexer_q_proj indexer_k_proj indexer_weights_proj]
//   compressed  q_a_proj q_b_proj kv_proj o_a_proj (copies = groups) o_b_proj compressor_kv compressor_gate
//               [indexer_q_proj indexer_weights_proj indexer_compressor_kv indexer_compressor_gate]
//   gated delta in_proj (q k v z; KDA: q k v) in_proj_ba (KDA: beta_proj) conv out_proj
//               KDA: decay_a_proj decay_b_proj, and output_gate_proj or gate_a_proj gate_b_proj
//   lightning   qkv_proj output_gate_proj out_proj
//   mamba2      in_proj conv out_proj
//   cross       cross_q_proj cross_kv_proj cross_o_proj
//   mlp         gate_up_proj (ungated: up_proj) down_proj
//   experts     router [router_table] experts_gate_up (ungated: experts_up) experts_down
//               [shared_gate_up (or shared_up) shared_down shared_gate] [latent_down_proj latent_up_proj]
//               and gate_up_proj down_proj of a dense MLP beside them
//   others      hyper_proj per_layer_gate per_layer_proj draft_proj
//   embedding   embed_tokens position_embeddings segment_embeddings project_in per_layer_embeddings
//   per_layer_model_proj head        project_out head_transform lm_head hyper_head
struct Weight {
  std::string name;
  int64_t inputs = 1;   // K of the GEMM that uses it; vectors have inputs = 1
  int64_t outputs = 1;  // N
  int64_t copies = 1;   // experts, heads of a batched multiply
  Cut cut = Cut::none;
  Scheme scheme = Scheme::bf16;
  int64_t kv_heads = 0;  // >0: of `outputs`, this many KV heads are replicated when tp exceeds them (qkv_proj)
  std::optional<double> int4_bytes = {};  // the model's
  double parameters() const {
    return static_cast<double>(inputs) * static_cast<double>(outputs) * static_cast<double>(copies);
  }
  double bytes_each() const {  // of a parameter, scales included
    return scheme == Scheme::int4_wo && int4_bytes ? *int4_bytes : facts(scheme).weight_bytes;
  }
};

std::vector<Weight> layer_weights(const Model& model, const Layer& layer);
std::vector<Weight> embedding_weights(const Model& model);  // token, position, segment tables
std::vector<Weight> head_weights(const Model& model);  // final norm and LM head; a tied head is listed with copies = 0

struct ParameterCount {
  double total = 0;   // as published figures count: draft layers left out
  double active = 0;  // used for one token: top_k of the experts; embedding tables count whole
  double draft = 0;   // multi-token-prediction layers
};
ParameterCount count_parameters(const Model& model);
Bytes weight_bytes(const Model& model);  // in their formats, unsharded

// Bytes of KV cache that one more token adds, over all layers, unsharded: layers whose cache grows with context.
// Window layers count while the context is inside the window (see cache_bytes for beyond).
Bytes kv_bytes_per_token(const Model& model, DType kv_dtype);

// Cache of one sequence with `context` tokens, over all layers, unsharded: windows capped, recurrent state included.
Bytes cache_bytes(const Model& model, int64_t context, DType kv_dtype);

// What one layer keeps of one sequence, in parts that live equally long.
struct CachePart {
  Bytes per_token;     // of each token in reach
  int64_t window = 0;  // reach in tokens; 0 = the whole sequence
  Bytes state;         // does not grow with the sequence
  bool operator==(const CachePart&) const = default;
};
std::vector<CachePart> layer_cache(const Model& model, const Layer& layer, DType kv_dtype);

// Width of DeepSeek-V4's pooling in heads: windows of ratio 4 overlap their neighbour.
constexpr int64_t compressor_overlap(int64_t ratio) {
  return ratio == 4 ? 2 : 1;
}

// Keys and values of an encoder's `tokens` outputs, held for the decoder's cross-attention; 0 without one.
Bytes cross_cache_bytes(const Model& model, int64_t tokens, DType kv_dtype);

// Recurrent state of one sequence (linear attention, Mamba), which does not grow with context.
Bytes state_bytes(const Model& model);

}  // namespace foretoken
