#include "model/config_parts.h"

#include <fmt/format.h>

namespace foretoken {

Model start_model(const ConfigReader& config, bool tied_by_default) {
  Model model;
  model.hidden = config.size("hidden_size");
  model.vocabulary = config.size("vocab_size");
  model.max_positions = longest_context(config);
  model.tied_embeddings = tied_embeddings(config, tied_by_default);
  return model;
}

bool tied_embeddings(const ConfigReader& config, bool fallback) {
  if (config.has("tie_word_embeddings")) return config.flag("tie_word_embeddings", fallback);
  const auto outer = config.whole().find("tie_word_embeddings");
  return outer ? outer->boolean() : fallback;
}

int64_t longest_context(const ConfigReader& config) {
  constexpr int64_t longest = 1'000'000'000;
  for (const char* key : {"max_position_embeddings", "n_positions", "seq_length", "max_seq_len"}) {
    if (config.has(key)) return config.size(key, longest);
  }
  return 0;
}

int64_t layer_count(const ConfigReader& config) {
  return config.size({"num_hidden_layers", "n_layer", "num_layers"}, ConfigReader::most_layers);
}

int64_t head_dimension(const ConfigReader& config, int64_t hidden, int64_t heads, std::string_view heads_key) {
  if (config.has("head_dim")) return config.size("head_dim");
  if (hidden % heads != 0) {
    config.text().at(heads_key).fail(fmt::format("a divisor of hidden size {} (or a key `head_dim`)", hidden));
  }
  return hidden / heads;
}

int64_t rotary_dimension(const ConfigReader& config, int64_t head_dim) {
  if (config.has("rotary_dim")) return config.size("rotary_dim", head_dim);
  double factor = config.fraction("partial_rotary_factor", 1.0);
  if (const auto rope = config.inside("rope_parameters")) factor = rope->fraction("partial_rotary_factor", factor);
  return static_cast<int64_t>(static_cast<double>(head_dim) * factor) / 2 * 2;
}

void check_head_groups(const ConfigReader& config, const Attention& attention, std::string_view key) {
  if (attention.heads % attention.kv_heads == 0) return;
  config.text().at(key).fail(fmt::format("a divisor of the {} query heads", attention.heads));
}

Attention grouped_attention(const ConfigReader& config, int64_t hidden) {
  Attention attention;
  attention.heads = config.size("num_attention_heads");
  attention.kv_heads = config.size_or("num_key_value_heads", attention.heads);
  check_head_groups(config, attention, "num_key_value_heads");
  attention.head_dim = head_dimension(config, hidden, attention.heads, "num_attention_heads");
  attention.rotary_dim = rotary_dimension(config, attention.head_dim);
  return attention;
}

std::vector<bool> rotary_layers(const ConfigReader& config, int64_t layers, int64_t interval) {
  const std::vector<int64_t> flags = config.layer_numbers("no_rope_layers");
  if (!flags.empty() && std::cmp_less(flags.size(), layers)) {
    config.text().at("no_rope_layers").fail("one flag for each layer");
  }
  std::vector<bool> rotary;
  for (int64_t i = 0; i < layers; ++i) {
    rotary.push_back(flags.empty() ? (i + 1) % interval != 0 : flags[static_cast<size_t>(i)] != 0);
  }
  return rotary;
}

void check_top_k(const ConfigReader& config, const Moe& moe, std::string_view key) {
  if (moe.top_k <= moe.experts) return;
  config.text().at(key).fail(fmt::format("at most the {} experts", moe.experts));
}

Layer draft_layer(Layer base) {
  base.draft_projection = true;
  base.norms += 3;
  return base;
}

FeedForward DeepSeekExperts::of_layer(int64_t layer) const {
  if (moe.experts == 0 || layer < first_dense || layer % every != 0) return dense;
  return moe;
}

DeepSeekExperts deepseek_experts(const ConfigReader& config) {
  DeepSeekExperts found;
  found.moe = {.experts = config.count_or("n_routed_experts", 0), .top_k = 1, .width = 1, .router_bias = true};
  if (found.moe.experts > 0) {
    found.moe.top_k = config.size("num_experts_per_tok");
    check_top_k(config, found.moe, "num_experts_per_tok");
    found.moe.width = config.size("moe_intermediate_size");
    found.moe.shared_width = config.count_or("n_shared_experts", 0, 1000) * found.moe.width;
  }
  found.first_dense = config.count_or("first_k_dense_replace", 0, ConfigReader::most_layers);
  found.every = config.size_or("moe_layer_freq", 1, ConfigReader::most_layers);
  const bool any_dense = found.moe.experts == 0 || found.first_dense > 0 || found.every > 1;
  if (any_dense) found.dense.width = config.size("intermediate_size");
  return found;
}

LatentAttention latent_attention(const ConfigReader& config) {
  LatentAttention attention;
  attention.heads = config.size("num_attention_heads");
  attention.query_rank = config.count_or("q_lora_rank", 0);
  attention.latent_dim = config.size("kv_lora_rank");
  attention.nope_dim = config.size("qk_nope_head_dim");
  attention.rope_dim = config.size("qk_rope_head_dim");
  attention.value_dim = config.size("v_head_dim");
  if (config.has("index_n_heads")) {
    attention.indexer = SparseIndexer{.heads = config.size("index_n_heads"),
                                      .head_dim = config.size("index_head_dim"),
                                      .top_k = config.size("index_topk")};
  }
  return attention;
}

}  // namespace foretoken
