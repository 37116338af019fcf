// LFM2 and LFM2.5 (Liquid AI): gated short convolutions, attention in every second or third layer.
#include <algorithm>

#include "model/config_parts.h"
#include "model/families/readers.h"

namespace foretoken {
namespace {

// Two thirds of the stated width, rounded up, unless told otherwise (transformers, Lfm2MLP).
int64_t adjusted_width(const ConfigReader& config) {
  int64_t width = config.size({"block_ff_dim", "intermediate_size"});
  if (!config.flag("block_auto_adjust_ff_dim", true)) return width;
  width = 2 * width / 3;
  if (const auto factor = config.text().find("block_ffn_dim_multiplier"); factor && !factor->is(Json::Kind::null)) {
    width = static_cast<int64_t>(static_cast<double>(width) * factor->number({.least = 0.01, .most = 100}));
  }
  const int64_t multiple = config.size_or("block_multiple_of", 256);
  return (width + multiple - 1) / multiple * multiple;
}

}  // namespace

Model read_lfm2(ConfigReader& config) {
  Model model = start_model(config, true);
  if (config.has("tie_embedding")) model.tied_embeddings = config.flag("tie_embedding", true);
  Attention attention = grouped_attention(config, model.hidden);
  attention.qk_norm = true;
  const ShortConvolution convolution{.width = config.size_or("conv_dim", model.hidden),
                                     .kernel = config.size_or("conv_L_cache", 3, 1000)};
  const int64_t layers = layer_count(config);
  const auto kinds = config.per_layer_words("layer_types", layers, {"conv", "full_attention"});
  const std::vector<int64_t> attending = config.layer_numbers("full_attn_idxs");
  if (!kinds && attending.empty()) config.text().at("layer_types");

  const bool has_experts = config.count_or("num_experts", 0) > 0;
  const int64_t dense_layers = config.count_or("num_dense_layers", 0, ConfigReader::most_layers);
  const Mlp mlp{.width = has_experts ? config.size("intermediate_size") : adjusted_width(config)};
  Moe moe;
  if (has_experts) {
    moe = {.experts = config.size("num_experts"),
           .top_k = config.size("num_experts_per_tok"),
           .width = config.size("moe_intermediate_size"),
           .router_bias = config.flag("use_expert_bias", true)};
    check_top_k(config, moe, "num_experts_per_tok");
  }
  for (int64_t i = 0; i < layers; ++i) {
    const bool attends = kinds ? (*kinds)[static_cast<size_t>(i)] == "full_attention"
                               : std::count(attending.begin(), attending.end(), i) > 0;
    Layer layer{.mixer = convolution, .feed_forward = mlp};
    if (attends) layer.mixer = attention;
    if (has_experts && i >= dense_layers) layer.feed_forward = moe;
    model.layers.push_back(layer);
  }
  if (config.whole().has("vision_config")) config.note("text tower only; the vision tower is not counted");
  return model;
}

}  // namespace foretoken
