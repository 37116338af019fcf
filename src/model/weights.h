// The weight tensors of a model, and what they and the KV cache take in memory. Parameter counts, memory and the GEMMs
// of a step all come from this one list.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "model/model.h"

namespace foretoken {

// How tensor parallelism cuts a matrix: by its outputs, by its inputs, by expert, or not at all.
enum class Cut { columns, rows, experts, vocabulary, none };

struct Weight {
  std::string name;        // qkv_proj, o_proj, gate_up_proj, experts_up, router, lm_head, norm, ...
  int64_t inputs = 1;      // K of the GEMM that uses it; vectors have inputs = 1
  int64_t outputs = 1;     // N
  int64_t copies = 1;      // experts, heads of a batched multiply
  Cut cut = Cut::none;
  Scheme scheme = Scheme::bf16;
  int64_t kv_heads = 0;    // >0: of `outputs`, this many KV heads are replicated when tp exceeds them (qkv_proj)
  double parameters() const { return static_cast<double>(inputs) * static_cast<double>(outputs) * static_cast<double>(copies); }
};

std::vector<Weight> layer_weights(const Model& model, const Layer& layer);
std::vector<Weight> embedding_weights(const Model& model);  // token, position, segment tables
std::vector<Weight> head_weights(const Model& model);       // final norm and LM head; a tied head is listed with copies = 0

struct ParameterCount {
  double total = 0;         // as published figures count: draft layers left out
  double active = 0;        // used for one token: top_k of the experts
  double draft = 0;         // multi-token-prediction layers
};
ParameterCount count_parameters(const Model& model);

// Bytes of KV cache that one more token adds, over all layers, unsharded: layers whose cache grows with context.
// Window layers count while the context is inside the window (see cache_bytes for beyond).
Bytes kv_bytes_per_token(const Model& model, DType kv_dtype);

// Cache of one sequence with `context` tokens, over all layers, unsharded: windows capped, recurrent state included.
Bytes cache_bytes(const Model& model, int64_t context, DType kv_dtype);

// Recurrent state of one sequence (linear attention, Mamba), which does not grow with context.
Bytes state_bytes(const Model& model);

}  // namespace foretoken
