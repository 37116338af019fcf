// Ling and Ring 2.5 to 3.0 (inclusionAI): linear attention layers, then a latent one; fine-grained experts.
#include <algorithm>

#include "model/config_parts.h"
#include "model/families/readers.h"

namespace foretoken {
namespace {

bool has_architecture(const ConfigReader& config, std::string_view name) {
  const auto architectures = config.whole().find("architectures");
  if (!architectures) return false;
  const std::vector<JsonView> names = architectures->items();
  return std::any_of(names.begin(), names.end(), [&](const JsonView& one) { return one.string() == name; });
}

Moe bailing_experts(const ConfigReader& config) {
  Moe moe{.experts = config.size("num_experts"),
          .top_k = config.size("num_experts_per_tok"),
          .width = config.size("moe_intermediate_size"),
          .router_bias = config.flag("moe_router_enable_expert_bias", true)};
  check_top_k(config, moe, "num_experts_per_tok");
  moe.shared_width =
      config.count_or("num_shared_experts", 0, 1000) * config.size_or("moe_shared_expert_intermediate_size", moe.width);
  return moe;
}

// Every layer_group_size-th layer, and those behind the last whole group, attend to all tokens.
bool attends_to_all(int64_t layer, int64_t layers, int64_t group) {
  return (layer + 1) % group == 0 || layer >= layers / group * group;
}

}  // namespace

// 3.0 (BailingMoeV3ForCausalLM) has KDA layers without low-rank factors, 2.5 and 2.6 lightning attention. Source: vLLM,
// models/bailing_moe_v3.py and bailing_moe_linear.py.
Model read_bailing_hybrid(ConfigReader& config) {
  Model model = start_model(config);
  const bool is_v3 = has_architecture(config, "BailingMoeV3ForCausalLM") || config.has("no_kda_lora");
  LatentAttention attention = latent_attention(config);
  if (const auto gate = config.text().find("gated_attention_proj_granularity_type")) {
    const std::string kind = gate->string();
    attention.head_gate = kind == "head_wise";
    attention.output_gate = kind == "element_wise";
    if (!attention.head_gate && !attention.output_gate) gate->fail("head_wise or element_wise");
  }
  const int64_t heads = config.size("num_attention_heads");
  const int64_t head_dim = head_dimension(config, model.hidden, heads, "num_attention_heads");
  Mixer linear = Lightning{.heads = heads, .head_dim = head_dim};
  if (is_v3) {
    const bool full_rank = config.flag("no_kda_lora", false);
    linear = GatedDelta{.per_channel_gate = true,
                        .key_heads = heads,
                        .value_heads = heads,
                        .key_dim = head_dim,
                        .value_dim = head_dim,
                        .conv_kernel = config.size_or("short_conv_kernel_size", 4, 1000),
                        .full_rank_gate = full_rank,
                        .full_rank_decay = full_rank};
  }
  const Moe moe = bailing_experts(config);
  const int64_t layers = layer_count(config);
  const int64_t group = config.size("layer_group_size", ConfigReader::most_layers);
  const int64_t first_dense = config.count_or("first_k_dense_replace", 0, ConfigReader::most_layers);
  for (int64_t i = 0; i < layers; ++i) {
    Layer layer{.mixer = linear, .feed_forward = moe};
    if (attends_to_all(i, layers, group)) layer.mixer = attention;
    if (i < first_dense) layer.feed_forward = Mlp{.width = config.size("intermediate_size")};
    model.layers.push_back(layer);
  }
  const int64_t drafts = config.count_or("num_nextn_predict_layers", 0, 100);
  model.draft_layers.assign(static_cast<size_t>(drafts), draft_layer({.mixer = attention, .feed_forward = moe}));
  return model;
}

// Ling 2.0: grouped attention in every layer.
Model read_bailing_moe(ConfigReader& config) {
  Model model = start_model(config);
  Attention attention = grouped_attention(config, model.hidden);
  attention.qk_norm = config.flag("use_qk_norm", false);
  attention.qkv_bias = config.flag("use_qkv_bias", false);
  attention.output_bias = config.flag("use_bias", false);
  const Moe moe = bailing_experts(config);
  const int64_t layers = layer_count(config);
  const int64_t first_dense = config.count_or("first_k_dense_replace", 0, ConfigReader::most_layers);
  for (int64_t i = 0; i < layers; ++i) {
    Layer layer{.mixer = attention, .feed_forward = moe};
    if (i < first_dense) layer.feed_forward = Mlp{.width = config.size("intermediate_size")};
    model.layers.push_back(layer);
  }
  const int64_t drafts = config.count_or("num_nextn_predict_layers", 0, 100);
  model.draft_layers.assign(static_cast<size_t>(drafts), draft_layer({.mixer = attention, .feed_forward = moe}));
  return model;
}

}  // namespace foretoken
