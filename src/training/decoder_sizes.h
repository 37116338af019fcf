// A decoder-only transformer by its sizes, as tables of runs and training scripts give them: every layer alike but for
// dense first layers and windows.
#pragma once

#include <cstdint>
#include <string>

#include "model/model.h"

namespace foretoken {

struct DecoderSizes {
  std::string name;
  int64_t layers = 1, hidden = 1, heads = 1, kv_heads = 1, head_dim = 1, ffn = 1, vocabulary = 1;
  int64_t positions = 1;  // longest sequence
  bool gated = true;      // three matrices of hidden x ffn, else two

  int64_t experts = 0;  // 0 = dense
  int64_t top_k = 1, expert_ffn = 1;
  int64_t shared_ffn = 0;    // all shared experts together
  int64_t dense_layers = 0;  // so many first layers have a dense MLP

  bool latent_attention = false;  // DeepSeek-V3's ranks and head sizes (arXiv 2412.19437, section 4.2)
  int64_t window = 0;             // every second layer, from the first on, sees so many keys; 0 = all see all
  bool learned_positions = false, tied_embeddings = false, biases = false, layer_norm = false, qk_norm = false;
  bool sinks = false;        // a learned logit per head (gpt-oss)
  int64_t draft_layers = 0;  // multi-token prediction
};

// InputError (source: the name) for sizes that no decoder has.
Model decoder_model(const DecoderSizes& sizes);

}  // namespace foretoken
