// MiniMax-Text-01, M2 and M3.
#include "model/config_parts.h"
#include "model/families/readers.h"

namespace foretoken {
namespace {

Moe experts(const ConfigReader& config) {
  Moe moe{.experts = config.size("num_local_experts"),
          .top_k = config.size("num_experts_per_tok"),
          .width = config.size("intermediate_size")};
  check_top_k(config, moe, "num_experts_per_tok");
  return moe;
}

}  // namespace

Model read_minimax_m2(ConfigReader& config) {
  Model model = start_model(config);
  Attention attention = grouped_attention(config, model.hidden);
  attention.qk_norm = config.flag("use_qk_norm", false);
  const auto norm_type = config.text().find("qk_norm_type");
  attention.qk_norm_whole = norm_type && norm_type->string() == "per_layer";
  Moe moe = experts(config);
  moe.router_bias = config.flag("use_routing_bias", true);
  moe.shared_width = config.count_or("shared_intermediate_size", 0);
  model.layers.assign(static_cast<size_t>(layer_count(config)), {.mixer = attention, .feed_forward = moe});
  if (config.count_or("num_mtp_modules", 0, 1000) > 0)
    config.note("the draft modules are not in the published weights");
  return model;
}

// Block-sparse layers read 128-key blocks that an indexer with one key head picks.
Model read_minimax_m3(ConfigReader& config) {
  Model model = start_model(config);
  Attention attention = grouped_attention(config, model.hidden);
  attention.qk_norm = config.flag("use_qk_norm", false);
  const int64_t layers = layer_count(config);
  Moe moe = experts(config);
  moe.width = config.size_or("moe_intermediate_size", moe.width);
  moe.router_bias = config.flag("use_routing_bias", true);
  moe.shared_width =
      config.count_or("n_shared_experts", 0, 1000) * config.size_or("shared_intermediate_size", moe.width);

  // moe_layer_freq is a flag per layer here; without it the first layers are dense.
  auto sparse = config.per_layer_numbers("moe_layer_freq", layers, 1);
  const int64_t first_dense = config.count_or("first_k_dense_replace", 0, ConfigReader::most_layers);
  std::optional<SparseIndexer> indexer;
  std::optional<std::vector<int64_t>> indexed;
  if (const auto sparse_attention = config.inside("sparse_attention_config");
      sparse_attention && sparse_attention->flag("use_sparse_attention", true)) {
    const int64_t block = sparse_attention->size("sparse_block_size");
    indexer = SparseIndexer{.heads = sparse_attention->size("sparse_num_index_heads"),
                            .head_dim = sparse_attention->size("sparse_index_dim"),
                            .top_k = sparse_attention->size("sparse_topk_blocks") * block,
                            .block = block};
    indexed = sparse_attention->per_layer_numbers("sparse_attention_freq", layers, 1);
  }
  for (int64_t i = 0; i < layers; ++i) {
    const auto at = static_cast<size_t>(i);
    Attention own = attention;
    const bool picks = indexer && (indexed ? (*indexed)[at] != 0 : i >= first_dense);
    if (picks) own.indexer = indexer;
    Layer layer{.mixer = own, .feed_forward = moe};
    const bool dense = sparse ? (*sparse)[at] == 0 : i < first_dense;
    if (dense) layer.feed_forward = Mlp{.width = config.size("dense_intermediate_size")};
    model.layers.push_back(layer);
  }
  if (config.count_or("num_mtp_modules", 0, 1000) > 0) config.note("draft modules are not modeled");
  config.note("text tower only; the vision tower is not counted");
  return model;
}

Model read_minimax_text_01(ConfigReader& config) {
  Model model = start_model(config);
  const Attention attention = grouped_attention(config, model.hidden);
  const Lightning lightning{.heads = attention.heads, .head_dim = attention.head_dim};
  Moe moe = experts(config);
  moe.shared_width = config.count_or("shared_intermediate_size", 0);
  const int64_t layers = layer_count(config);
  const auto types = config.per_layer_numbers("attn_type_list", layers, 1);  // 0 linear, 1 softmax
  const auto words = config.per_layer_words("layer_types", layers, {"linear_attention", "full_attention"});
  if (!types && !words) config.text().at("attn_type_list");
  for (size_t i = 0; std::cmp_less(i, layers); ++i) {
    const bool softmax = types ? (*types)[i] == 1 : (*words)[i] == "full_attention";
    Layer layer{.feed_forward = moe};
    if (softmax) {
      layer.mixer = attention;
    } else {
      layer.mixer = lightning;
    }
    model.layers.push_back(layer);
  }
  return model;
}

}  // namespace foretoken
