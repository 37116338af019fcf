// Decoders with layer norms, biases and an ungated MLP.
#include "model/config_parts.h"
#include "model/families/readers.h"

namespace foretoken {
namespace {

Layer biased_layer(const Attention& attention, int64_t mlp_width) {
  Layer layer{
      .mixer = attention, .feed_forward = Mlp{.width = mlp_width, .gated = false, .bias = true}, .layer_norm = true};
  std::get<Attention>(layer.mixer).qkv_bias = std::get<Attention>(layer.mixer).output_bias = true;
  return layer;
}

}  // namespace

Model read_gpt2(ConfigReader& config) {
  Model model;
  model.hidden = config.size({"n_embd", "hidden_size"});
  model.vocabulary = config.size("vocab_size");
  model.max_positions = model.position_rows = config.size({"n_positions", "n_ctx", "max_position_embeddings"});
  model.tied_embeddings = tied_embeddings(config, true);
  const char* heads_key = config.has("num_attention_heads") ? "num_attention_heads" : "n_head";
  Attention attention{.heads = config.size(heads_key)};
  attention.kv_heads = attention.heads;
  attention.head_dim = head_dimension(config, model.hidden, attention.heads, heads_key);
  model.layers.assign(
      static_cast<size_t>(config.size({"n_layer", "num_hidden_layers"}, ConfigReader::most_layers)),
      biased_layer(attention, config.size_or("n_inner", 4 * model.hidden, 4 * ConfigReader::largest_dimension)));
  return model;
}

Model read_opt(ConfigReader& config) {
  Model model = start_model(config, true);
  model.position_rows = model.max_positions + 2;  // the first two rows are never used
  const int64_t embedding_width = config.size_or("word_embed_proj_dim", model.hidden);
  if (embedding_width != model.hidden) model.embedding_width = embedding_width;
  Attention attention = grouped_attention(config, model.hidden);
  attention.rotary_dim = 0;
  model.final_norm = config.flag("do_layer_norm_before", true);
  model.layers.assign(static_cast<size_t>(layer_count(config)), biased_layer(attention, config.size("ffn_dim")));
  return model;
}

Model read_bloom(ConfigReader& config) {
  Model model;
  model.hidden = config.size({"hidden_size", "n_embed"});
  model.vocabulary = config.size("vocab_size");
  model.max_positions = longest_context(config);
  model.tied_embeddings = tied_embeddings(config, true);
  model.embedding_norm = true;
  const char* heads_key = config.has("num_attention_heads") ? "num_attention_heads" : "n_head";
  Attention attention{.heads = config.size(heads_key)};
  attention.kv_heads = attention.heads;
  attention.head_dim = head_dimension(config, model.hidden, attention.heads, heads_key);
  model.layers.assign(static_cast<size_t>(config.size({"n_layer", "num_hidden_layers"}, ConfigReader::most_layers)),
                      biased_layer(attention, 4 * model.hidden));
  return model;
}

Model read_falcon(ConfigReader& config) {
  Model model = start_model(config, true);
  const char* heads_key = config.has("n_head") ? "n_head" : "num_attention_heads";
  Attention attention{.heads = config.size(heads_key)};
  const bool grouped = config.flag("new_decoder_architecture", false);
  if (grouped) {
    attention.kv_heads = config.size({"num_kv_heads", "n_head_kv"});
    check_head_groups(config, attention, config.has("num_kv_heads") ? "num_kv_heads" : "n_head_kv");
  } else {
    attention.kv_heads = config.flag("multi_query", true) ? 1 : attention.heads;
  }
  attention.head_dim = head_dimension(config, model.hidden, attention.heads, heads_key);
  attention.rotary_dim = config.flag("alibi", false) ? 0 : attention.head_dim;
  attention.qkv_bias = attention.output_bias = config.flag("bias", false);
  Layer layer{.mixer = attention,
              .feed_forward =
                  Mlp{.width = config.size_or("ffn_hidden_size", 4 * model.hidden, 4 * ConfigReader::largest_dimension),
                      .gated = false,
                      .bias = attention.qkv_bias},
              .layer_norm = true};
  layer.parallel = grouped || config.flag("parallel_attn", true);
  // The grouped design norms attention and MLP inputs apart, the older parallel one shares a single norm.
  if (layer.parallel) layer.norms = static_cast<int>(config.size_or("num_ln_in_parallel_attn", grouped ? 2 : 1, 2));
  model.layers.assign(static_cast<size_t>(layer_count(config)), layer);
  return model;
}

Model read_phi(ConfigReader& config) {
  Model model = start_model(config);
  Layer layer = biased_layer(grouped_attention(config, model.hidden), config.size("intermediate_size"));
  auto& attention = std::get<Attention>(layer.mixer);
  if (!config.has("partial_rotary_factor")) attention.rotary_dim = attention.head_dim / 4 * 2;
  layer.parallel = true;
  layer.norms = 1;
  model.head_bias = true;
  model.layers.assign(static_cast<size_t>(layer_count(config)), layer);
  return model;
}

}  // namespace foretoken
