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

// GPT-2 whose query heads share one key and value head.
Model read_gpt_bigcode(ConfigReader& config) {
  Model model = read_gpt2(config);
  if (!config.flag("multi_query", true)) return model;
  for (Layer& layer : model.layers) std::get<Attention>(layer.mixer).kv_heads = 1;
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

// Keys of llm-foundry. transformers assumes ALiBi and no biases where the config says nothing.
Model read_mpt(ConfigReader& config) {
  Model model;
  model.hidden = config.size("d_model");
  model.vocabulary = config.size("vocab_size");
  model.max_positions = config.count_or("max_seq_len", 0);
  model.tied_embeddings = tied_embeddings(config, true);
  const int64_t heads = config.size("n_heads");
  Attention attention{
      .heads = heads, .kv_heads = heads, .head_dim = head_dimension(config, model.hidden, heads, "n_heads")};
  bool learned_positions = config.flag("learned_pos_emb", true);
  if (const auto part = config.inside("attn_config")) {
    const bool rotary = part->flag("rope", false);
    if (rotary) attention.rotary_dim = attention.head_dim;
    if (rotary || part->flag("alibi", true)) learned_positions = false;
    attention.qk_norm = attention.qk_norm_whole = part->flag("qk_ln", false);
    attention.kv_heads = part->size_or("kv_n_heads", heads);
    check_head_groups(*part, attention, "kv_n_heads");
  } else {
    learned_positions = false;
  }
  if (learned_positions) model.position_rows = config.size("max_seq_len");
  const int64_t ratio = config.size_or("expansion_ratio", 4, 64);
  Layer layer = biased_layer(attention, ratio * model.hidden);
  if (config.flag("no_bias", true)) {  // of the norms too
    auto& own = std::get<Attention>(layer.mixer);
    own.qkv_bias = own.output_bias = std::get<Mlp>(layer.feed_forward).bias = layer.layer_norm = false;
  }
  model.layers.assign(static_cast<size_t>(config.size("n_layers", ConfigReader::most_layers)), layer);
  return model;
}

Model read_nemotron(ConfigReader& config) {
  Model model = start_model(config);
  Attention attention = grouped_attention(config, model.hidden);
  if (!config.has("partial_rotary_factor") && !config.has("rope_parameters")) {
    attention.rotary_dim = attention.head_dim / 4 * 2;
  }
  attention.qkv_bias = attention.output_bias = config.flag("attention_bias", false);
  model.layers.assign(
      static_cast<size_t>(layer_count(config)),
      {.mixer = attention,
       .feed_forward =
           Mlp{.width = config.size("intermediate_size"), .gated = false, .bias = config.flag("mlp_bias", false)},
       .layer_norm = true});
  return model;
}

}  // namespace foretoken
