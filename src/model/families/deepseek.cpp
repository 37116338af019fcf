// DeepSeek-V2 to V4 and the families built on them.
#include <fmt/format.h>

#include "model/config_parts.h"
#include "model/families/readers.h"

namespace foretoken {

namespace {

// DeepSeek-OCR and the small VL2 models keep grouped heads.
Mixer deepseek_attention(const ConfigReader& config, int64_t hidden) {
  if (config.flag("use_mla", true)) return latent_attention(config);
  return grouped_attention(config, hidden);
}

// GLM-5.2: the keys that a "full" layer chooses are read by the "shared" ones behind it too.
Mixer attention_of_layer(const Mixer& attention, const std::optional<std::vector<std::string>>& indexers,
                         size_t layer) {
  Mixer own = attention;
  auto* latent = std::get_if<LatentAttention>(&own);
  if (latent != nullptr && latent->indexer && indexers) latent->indexer->reused = (*indexers)[layer] == "shared";
  return own;
}

}  // namespace

Model read_deepseek(ConfigReader& config) {
  Model model = start_model(config);
  const Mixer attention = deepseek_attention(config, model.hidden);
  DeepSeekExperts experts = deepseek_experts(config);
  experts.moe.router_bias = config.model_type() != "deepseek_v2";  // the balancing bias came with V3
  const int64_t layers = layer_count(config);
  const auto indexers = config.per_layer_words("indexer_types", layers, {"full", "shared"});
  for (int64_t i = 0; i < layers; ++i) {
    model.layers.push_back({.mixer = attention_of_layer(attention, indexers, static_cast<size_t>(i)),
                            .feed_forward = experts.of_layer(i)});
  }
  const int64_t drafts = config.count_or("num_nextn_predict_layers", 0, 100);
  Layer last = model.layers.back();
  last.mixer = attention;
  model.draft_layers.assign(static_cast<size_t>(drafts), draft_layer(last));
  return model;
}

// Ratio 4 layers pick top_k compressed keys with an indexer; ratio 128 layers read all of them; ratio 0 is a window
// only. All keep a window of uncompressed keys. Source: DeepSeek-V4's published inference code.
Model read_deepseek_v4(ConfigReader& config) {
  Model model = start_model(config);
  model.cache_dtype = DType::fp8;  // engines have kernels for no other (vLLM refuses the rest)
  constexpr int64_t indexed_ratio = 4;
  CompressedAttention attention{.heads = config.size("num_attention_heads"),
                                .head_dim = config.size("head_dim"),
                                .rope_dim = config.size("qk_rope_head_dim"),
                                .query_rank = config.size("q_lora_rank"),
                                .output_rank = config.size("o_lora_rank"),
                                .output_groups = config.size("o_groups"),
                                .window = config.size("sliding_window")};
  if (attention.heads % attention.output_groups != 0) {
    config.text().at("o_groups").fail(fmt::format("a divisor of the {} heads", attention.heads));
  }
  const SparseIndexer indexer{.heads = config.size("index_n_heads"),
                              .head_dim = config.size("index_head_dim"),
                              .top_k = config.size("index_topk")};
  const int64_t layers = layer_count(config);
  const int64_t hash_layers = config.count_or("num_hash_layers", 0, ConfigReader::most_layers);
  const auto ratios = config.per_layer_numbers("compress_ratios", layers, ConfigReader::largest_dimension);
  if (!ratios) config.text().at("compress_ratios");
  const int streams = static_cast<int>(config.count_or("hc_mult", 0, 64));
  const DeepSeekExperts experts = deepseek_experts(config);
  const auto layer_of = [&](int64_t ratio, bool hashed) {
    attention.ratio = ratio;
    attention.indexer = ratio == indexed_ratio ? std::optional(indexer) : std::nullopt;
    Moe moe = experts.moe;
    moe.router_is_table = hashed;
    moe.router_bias = !hashed;
    return Layer{.mixer = attention, .feed_forward = moe, .hyper_streams = streams};
  };
  for (int64_t i = 0; i < layers; ++i) {
    model.layers.push_back(layer_of((*ratios)[static_cast<size_t>(i)], i < hash_layers));
  }
  const int64_t drafts = config.count_or("num_nextn_predict_layers", 0, 100);
  model.draft_layers.assign(static_cast<size_t>(drafts), draft_layer(layer_of(0, false)));
  return model;
}

}  // namespace foretoken
