// Routed experts behind full and sliding attention, each with heads of its own: MiMo-V2, Laguna, Step-3.5.
#include <fmt/format.h>

#include "model/config_parts.h"
#include "model/families/readers.h"

namespace foretoken {
namespace {

std::optional<std::vector<std::string>> attention_kinds(const ConfigReader& config, int64_t layers) {
  return config.per_layer_words("layer_types", layers, {"sliding_attention", "full_attention"});
}

// An element per layer, of a list that also names draft layers behind them.
bool named_at(const std::optional<std::vector<std::string>>& names, int64_t layer, std::string_view name) {
  return names && (*names)[static_cast<size_t>(layer)] == name;
}

}  // namespace

// 0 in hybrid_layer_pattern is full attention, 1 a window. Source: vLLM, models/mimo_v2.py.
Model read_mimo_v2(ConfigReader& config) {
  Model model = start_model(config);
  Attention full = grouped_attention(config, model.hidden);
  full.value_dim = config.count_or("v_head_dim", 0);
  full.qkv_bias = config.flag("attention_bias", false);
  full.sinks = config.flag("add_full_attention_sink_bias", false);
  Attention window = full;
  window.heads = config.size_or("swa_num_attention_heads", full.heads);
  window.kv_heads = config.size_or("swa_num_key_value_heads", full.kv_heads);
  if (config.has("swa_num_key_value_heads")) check_head_groups(config, window, "swa_num_key_value_heads");
  window.head_dim = config.size_or("swa_head_dim", full.head_dim);
  window.value_dim = config.count_or("swa_v_head_dim", full.value_dim);
  window.sinks = config.flag("add_swa_attention_sink_bias", false);
  window.window = config.size({"sliding_window", "sliding_window_size"});

  const int64_t layers = layer_count(config);
  const auto slides = config.per_layer_numbers("hybrid_layer_pattern", layers, 1);
  if (!slides) config.text().at("hybrid_layer_pattern");
  const auto sparse = config.per_layer_numbers("moe_layer_freq", layers, 1);
  Moe moe{.experts = config.size("n_routed_experts"),
          .top_k = config.size("num_experts_per_tok"),
          .width = config.size("moe_intermediate_size"),
          .router_bias = true};
  check_top_k(config, moe, "num_experts_per_tok");
  moe.shared_width = config.count_or("n_shared_experts", 0, 1000) * moe.width;
  const Mlp dense{.width = config.size("intermediate_size")};
  for (size_t i = 0; std::cmp_less(i, layers); ++i) {
    Layer layer{.mixer = (*slides)[i] == 1 ? window : full, .feed_forward = moe};
    if (sparse && (*sparse)[i] == 0) layer.feed_forward = dense;
    model.layers.push_back(layer);
  }
  // Draft layers are dense and attend inside the window (models/mimo_v2_mtp.py); their number is not in the config.
  const int64_t drafts = config.count_or("num_nextn_predict_layers", 0, 100);
  model.draft_layers.assign(static_cast<size_t>(drafts), draft_layer({.mixer = window, .feed_forward = dense}));
  if (config.whole().has("vision_config")) config.note("text tower only; vision and audio towers are not counted");
  return model;
}

// Source: transformers, models/laguna.
Model read_laguna(ConfigReader& config) {
  Model model = start_model(config);
  Attention attention = grouped_attention(config, model.hidden);
  attention.qk_norm = true;
  attention.qkv_bias = config.flag("attention_bias", false);
  attention.rotary_dim = attention.head_dim;
  if (const auto gating = config.text().find("gating"); gating && gating->is(Json::Kind::string)) {
    const std::string kind = gating->string();
    attention.output_gate = kind == "per-element";
    attention.head_gate = kind == "per-head";
    if (!attention.output_gate && !attention.head_gate && kind != "disabled") {
      gating->fail("per-head, per-element or disabled");
    }
  } else {
    attention.head_gate = config.flag("gating", true);
  }
  Moe moe{.experts = config.size("num_experts"),
          .top_k = config.size("num_experts_per_tok"),
          .width = config.size("moe_intermediate_size"),
          .router_bias = true,
          .shared_width = config.count_or("shared_expert_intermediate_size", 0)};
  check_top_k(config, moe, "num_experts_per_tok");

  const int64_t layers = layer_count(config);
  const auto kinds = attention_kinds(config, layers);
  const auto mlps = config.per_layer_words("mlp_layer_types", layers, {"dense", "sparse"});
  const std::vector<int64_t> heads = config.layer_numbers("num_attention_heads_per_layer");
  if (!heads.empty() && std::cmp_less(heads.size(), layers)) {
    config.text().at("num_attention_heads_per_layer").fail("one number of heads for each layer");
  }
  for (int64_t i = 0; i < layers; ++i) {
    Attention own = attention;
    if (!heads.empty()) {
      own.heads = heads[static_cast<size_t>(i)];
      if (own.heads < 1) config.text().at("num_attention_heads_per_layer").fail("at least one head in each layer");
      check_head_groups(config, own, "num_attention_heads_per_layer");
    }
    if (named_at(kinds, i, "sliding_attention")) own.window = config.size("sliding_window");
    Layer layer{.mixer = own, .feed_forward = moe};
    if (mlps ? named_at(mlps, i, "dense") : i == 0) layer.feed_forward = Mlp{.width = config.size("intermediate_size")};
    model.layers.push_back(layer);
  }
  return model;
}

// Keys as the publisher writes them, or as transformers renames them. Source: vLLM, models/step3p5.py.
Model read_step3p5(ConfigReader& config) {
  Model model = start_model(config);
  Attention full{.heads = config.size("num_attention_heads"),
                 .kv_heads = config.size({"num_key_value_heads", "num_attention_groups"}),
                 .head_dim = config.size("head_dim"),
                 .qk_norm = true,
                 .head_gate = config.flag("use_head_wise_attn_gate", true)};
  check_head_groups(config, full, config.has("num_key_value_heads") ? "num_key_value_heads" : "num_attention_groups");
  full.rotary_dim = full.head_dim;
  Attention window = full;
  window.heads = config.size_or("num_sliding_attention_heads", full.heads);
  if (const auto other = config.inside("attention_other_setting")) {
    window.heads = other->size_or("num_attention_heads", window.heads);
    window.kv_heads = other->size_or("num_attention_groups", window.kv_heads);
    window.head_dim = other->size_or("head_dim", window.head_dim);
  } else if (!config.has("num_sliding_attention_heads")) {
    config.note("the config does not state the heads of sliding layers: those of the full ones are assumed");
  }
  window.window = config.count_or("sliding_window", 0);

  Moe moe{.experts = config.size({"n_routed_experts", "moe_num_experts", "num_experts"}),
          .top_k = config.size({"num_experts_per_tok", "moe_top_k"}),
          .width = config.size("moe_intermediate_size"),
          .router_bias = config.flag("use_moe_router_bias", true),
          .shared_width = config.size({"share_expert_dim", "share_expert_dims"})};
  const int64_t layers = layer_count(config);
  const auto kinds = attention_kinds(config, layers);
  const int64_t first_sparse = config.count_or("first_k_dense_replace", 3, ConfigReader::most_layers);
  const Mlp dense{.width = config.size("intermediate_size")};
  for (int64_t i = 0; i < layers; ++i) {
    const bool slides = kinds ? named_at(kinds, i, "sliding_attention") : i % 4 != 0;
    Layer layer{.mixer = slides ? window : full, .feed_forward = moe};
    if (i < first_sparse) layer.feed_forward = dense;
    model.layers.push_back(layer);
  }
  const int64_t drafts = config.count_or("num_nextn_predict_layers", 0, 100);
  model.draft_layers.assign(static_cast<size_t>(drafts), draft_layer({.mixer = window, .feed_forward = dense}));
  return model;
}

}  // namespace foretoken
