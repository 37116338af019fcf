// Pieces that many families spell alike.
#pragma once

#include <cstdint>
#include <vector>

#include "model/config_reader.h"
#include "model/model.h"

namespace foretoken {

// Hidden size, vocabulary, longest context. Tied embeddings where the config says nothing: `tied_by_default`.
Model start_model(const ConfigReader& config, bool tied_by_default = false);
bool tied_embeddings(const ConfigReader& config, bool fallback);
int64_t longest_context(const ConfigReader& config);
int64_t layer_count(const ConfigReader& config);

// num_attention_heads, num_key_value_heads (absent: as many), head_dim (absent: hidden / heads), rotary part.
Attention grouped_attention(const ConfigReader& config, int64_t hidden);
// Head size and rotary size for heads already known.
int64_t head_dimension(const ConfigReader& config, int64_t hidden, int64_t heads, std::string_view heads_key);
int64_t rotary_dimension(const ConfigReader& config, int64_t head_dim);
void check_head_groups(const ConfigReader& config, const Attention& attention, std::string_view key);

// Layers with rotary positions: those flagged 1 in no_rope_layers; absent, all but every `interval`-th.
std::vector<bool> rotary_layers(const ConfigReader& config, int64_t layers, int64_t interval);

// top_k must not exceed the experts; names the key that holds it.
void check_top_k(const ConfigReader& config, const Moe& moe, std::string_view key);

// The draft layer of multi-token prediction: `base` behind a projection of 2 hidden -> hidden, and three norms
// (of the embedding, of the hidden state, before the shared head). DeepSeek-V3 report, section 2.2.
Layer draft_layer(Layer base);

// Experts as DeepSeek and those after it name them. The layer is dense before first_k_dense_replace and off
// moe_layer_freq.
struct DeepSeekExperts {
  Moe moe;
  Mlp dense;
  int64_t first_dense = 0, every = 1;
  FeedForward of_layer(int64_t layer) const;
};
DeepSeekExperts deepseek_experts(const ConfigReader& config);

// Latent attention as DeepSeek-V2 and those after it name it, with the indexer where the config has one.
LatentAttention latent_attention(const ConfigReader& config);

}  // namespace foretoken
