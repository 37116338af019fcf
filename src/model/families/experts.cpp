// Ordinary grouped attention with routed experts.
#include <algorithm>

#include "model/config_parts.h"
#include "model/families/readers.h"

namespace foretoken {
namespace {

// Experts by the names of Mixtral; their width is intermediate_size.
Moe local_experts(const ConfigReader& config) {
  Moe moe{.experts = config.size("num_local_experts"),
          .top_k = config.size({"num_experts_per_tok", "experts_per_token"}),
          .width = config.size("intermediate_size")};
  check_top_k(config, moe, config.has("num_experts_per_tok") ? "num_experts_per_tok" : "experts_per_token");
  return moe;
}

// Qwen: layer i (from 1) has experts where decoder_sparse_step divides it and mlp_only_layers does not name it.
Model qwen_moe(const ConfigReader& config, const Attention& attention, bool shared_expert) {
  Model model = start_model(config);
  Moe moe{.experts = config.size("num_experts"),
          .top_k = config.size("num_experts_per_tok"),
          .width = config.size("moe_intermediate_size")};
  check_top_k(config, moe, "num_experts_per_tok");
  if (shared_expert) {
    moe.shared_width = config.count_or("shared_expert_intermediate_size", 0);
    moe.shared_gate = moe.shared_width > 0;
  }
  const int64_t step = config.size_or("decoder_sparse_step", 1, ConfigReader::most_layers);
  const std::vector<int64_t> dense_layers = config.layer_numbers("mlp_only_layers");
  const int64_t layers = layer_count(config);
  for (int64_t i = 0; i < layers; ++i) {
    const bool dense = (i + 1) % step != 0 || std::count(dense_layers.begin(), dense_layers.end(), i) > 0;
    Layer layer{.mixer = attention, .feed_forward = moe};
    if (dense) layer.feed_forward = Mlp{.width = config.size("intermediate_size")};
    model.layers.push_back(layer);
  }
  return model;
}

}  // namespace

Model read_mixtral(ConfigReader& config) {
  Model model = start_model(config);
  Attention attention = grouped_attention(config, model.hidden);
  attention.window = config.count_or("sliding_window", 0);
  model.layers.assign(static_cast<size_t>(layer_count(config)),
                      {.mixer = attention, .feed_forward = local_experts(config)});
  return model;
}

Model read_phimoe(ConfigReader& config) {
  Model model = start_model(config);
  Attention attention = grouped_attention(config, model.hidden);
  attention.qkv_bias = attention.output_bias = config.flag("attention_bias", false);
  attention.window = config.count_or("sliding_window", 0);
  if (attention.window >= model.max_positions) attention.window = 0;
  model.head_bias = config.flag("lm_head_bias", false);
  model.layers.assign(static_cast<size_t>(layer_count(config)),
                      {.mixer = attention, .feed_forward = local_experts(config), .layer_norm = true});
  return model;
}

Model read_qwen2_moe(ConfigReader& config) {
  Attention attention = grouped_attention(config, config.size("hidden_size"));
  attention.qkv_bias = config.flag("qkv_bias", true);
  return qwen_moe(config, attention, true);
}

Model read_qwen3_moe(ConfigReader& config) {
  Attention attention = grouped_attention(config, config.size("hidden_size"));
  attention.qk_norm = true;
  attention.qkv_bias = attention.output_bias = config.flag("attention_bias", false);
  return qwen_moe(config, attention, false);
}

Model read_glm4_moe(ConfigReader& config) {
  Model model = start_model(config);
  Attention attention = grouped_attention(config, model.hidden);
  attention.qkv_bias = config.flag("attention_bias", false);
  attention.qk_norm = config.flag("use_qk_norm", false);
  const DeepSeekExperts experts = deepseek_experts(config);
  const int64_t layers = layer_count(config);
  for (int64_t i = 0; i < layers; ++i) {
    model.layers.push_back({.mixer = attention, .feed_forward = experts.of_layer(i)});
  }
  const int64_t drafts = config.count_or("num_nextn_predict_layers", 0, 100);
  model.draft_layers.assign(static_cast<size_t>(drafts), draft_layer(model.layers.back()));
  return model;
}

Model read_gpt_oss(ConfigReader& config) {
  Model model = start_model(config);
  Attention attention = grouped_attention(config, model.hidden);
  attention.qkv_bias = attention.output_bias = config.flag("attention_bias", true);
  attention.sinks = true;
  Moe moe = local_experts(config);
  moe.bias = true;
  const int64_t layers = layer_count(config);
  const int64_t window = config.size("sliding_window");
  const auto types = config.per_layer_words("layer_types", layers, {"sliding_attention", "full_attention"});
  for (int64_t i = 0; i < layers; ++i) {
    const bool slides = types ? (*types)[static_cast<size_t>(i)] == "sliding_attention" : i % 2 == 0;
    attention.window = slides ? window : 0;
    model.layers.push_back({.mixer = attention, .feed_forward = moe});
  }
  return model;
}

// Source: transformers, models/ernie4_5_moe.
Model read_ernie4_5_moe(ConfigReader& config) {
  Model model = start_model(config, true);
  Attention attention = grouped_attention(config, model.hidden);
  attention.qkv_bias = attention.output_bias = config.flag("use_bias", false);
  Moe moe{.experts = config.size("moe_num_experts"),
          .top_k = config.size("moe_k"),
          .width = config.size("moe_intermediate_size"),
          .router_bias = true};
  check_top_k(config, moe, "moe_k");
  moe.shared_width = config.count_or("moe_num_shared_experts", 0, 1000) * moe.width;
  const int64_t layers = layer_count(config);
  const int64_t first = config.count_or("moe_layer_start_index", 1, ConfigReader::most_layers);
  const int64_t every = config.size_or("moe_layer_interval", 1, ConfigReader::most_layers);
  for (int64_t i = 0; i < layers; ++i) {
    Layer layer{.mixer = attention, .feed_forward = moe};
    if (i < first || (i + 1) % every != 0) layer.feed_forward = Mlp{.width = config.size("intermediate_size")};
    model.layers.push_back(layer);
  }
  return model;
}

// Layers with rotary positions attend inside chunks; every fourth has no positions and attends to all.
Model read_llama4(ConfigReader& config) {
  Model model = start_model(config);
  Attention attention = grouped_attention(config, model.hidden);
  attention.qkv_bias = attention.output_bias = config.flag("attention_bias", false);
  const int64_t layers = layer_count(config);
  const int64_t chunk = config.count_or("attention_chunk_size", 0);
  const int64_t step = config.size_or("interleave_moe_layer_step", 1, ConfigReader::most_layers);
  const std::vector<int64_t> sparse = config.layer_numbers("moe_layers");
  const std::vector<bool> rotary = rotary_layers(config, layers, 4);
  Moe moe = local_experts(config);
  moe.shared_width = moe.width;
  for (int64_t i = 0; i < layers; ++i) {
    const bool has_rotary = rotary[static_cast<size_t>(i)];
    const bool has_experts = sparse.empty() ? (i + 1) % step == 0 : std::count(sparse.begin(), sparse.end(), i) > 0;
    Attention own = attention;
    own.window = has_rotary ? chunk : 0;
    own.rotary_dim = has_rotary ? attention.rotary_dim : 0;
    Layer layer{.mixer = own, .feed_forward = moe};
    if (!has_experts) layer.feed_forward = Mlp{.width = config.size("intermediate_size_mlp")};
    model.layers.push_back(layer);
  }
  config.note("text tower only; the vision tower is not counted");
  return model;
}

}  // namespace foretoken
