// Decoders of norm, grouped attention, norm, gated MLP, and what their families change about it.
#include <fmt/format.h>

#include "model/config_parts.h"
#include "model/families/readers.h"

namespace foretoken {
namespace {

Model decoder(const ConfigReader& config, const Layer& layer, bool tied_by_default = false) {
  Model model = start_model(config, tied_by_default);
  model.layers.assign(static_cast<size_t>(layer_count(config)), layer);
  return model;
}

Layer plain_layer(const ConfigReader& config) {
  return {.mixer = grouped_attention(config, config.size("hidden_size")),
          .feed_forward = Mlp{.width = config.size("intermediate_size")}};
}

Attention& attention_of(Layer& layer) {
  return std::get<Attention>(layer.mixer);
}

// Qwen's rule: windows only with use_sliding_window, and only from max_window_layers on; layer_types wins.
void apply_qwen_windows(const ConfigReader& config, Model& model) {
  if (!config.flag("use_sliding_window", false) || !config.has("sliding_window")) return;
  const auto layers = static_cast<int64_t>(model.layers.size());
  const auto types = config.per_layer_words("layer_types", layers, {"sliding_attention", "full_attention"});
  const int64_t first = config.count_or("max_window_layers", 0, ConfigReader::most_layers);
  for (int64_t i = 0; i < layers; ++i) {
    const bool slides = types ? (*types)[static_cast<size_t>(i)] == "sliding_attention" : i >= first;
    if (slides) attention_of(model.layers[static_cast<size_t>(i)]).window = config.size("sliding_window");
  }
}

// A window for every layer, or for those that layer_types names.
void apply_windows(const ConfigReader& config, Model& model) {
  const int64_t window = config.count_or("sliding_window", 0);
  if (window == 0) return;
  const auto types = config.per_layer_words("layer_types", static_cast<int64_t>(model.layers.size()),
                                            {"sliding_attention", "full_attention"});
  for (size_t i = 0; i < model.layers.size(); ++i) {
    if (!types || (*types)[i] == "sliding_attention") attention_of(model.layers[i]).window = window;
  }
}

void add_draft_layers(const ConfigReader& config, Model& model) {
  const int64_t drafts = config.count_or("num_nextn_predict_layers", 0, 100);
  model.draft_layers.assign(static_cast<size_t>(drafts), draft_layer(model.layers.back()));
}

}  // namespace

Model read_llama(ConfigReader& config) {
  Layer layer = plain_layer(config);
  // `bias` is InternLM's name for it. Llama's attention_bias covers the output projection too.
  const bool bias = config.flag("attention_bias", config.flag("bias", false));
  attention_of(layer).qkv_bias = attention_of(layer).output_bias = bias;
  std::get<Mlp>(layer.feed_forward).bias = config.flag("mlp_bias", false);
  return decoder(config, layer);
}

// Llama's block under the key names of OLMo.
Model read_llada(ConfigReader& config) {
  Model model;
  model.hidden = config.size("d_model");
  model.vocabulary = config.size("vocab_size");
  model.max_positions = config.count_or("max_sequence_length", 0);
  model.tied_embeddings = config.flag("weight_tying", false);
  const int64_t heads = config.size("n_heads");
  Attention attention{.heads = heads,
                      .kv_heads = config.size_or("n_kv_heads", heads),
                      .head_dim = head_dimension(config, model.hidden, heads, "n_heads")};
  attention.rotary_dim = attention.head_dim;
  check_head_groups(config, attention, "n_kv_heads");
  model.layers.assign(static_cast<size_t>(config.size("n_layers", ConfigReader::most_layers)),
                      {.mixer = attention, .feed_forward = Mlp{.width = config.size("mlp_hidden_size")}});
  config.note(
      "a diffusion model: counted as if tokens read only those before them, blocks of it with {diffusion_block}");
  return model;
}

Model read_mistral(ConfigReader& config) {
  Model model = decoder(config, plain_layer(config));
  apply_windows(config, model);
  return model;
}

// The publisher's file (it has kv_channels) stores twice the width of one MLP branch.
Model read_qwen(ConfigReader& config) {
  Layer layer = plain_layer(config);
  attention_of(layer).qkv_bias = true;
  if (config.has("kv_channels")) {
    attention_of(layer).head_dim = attention_of(layer).rotary_dim = config.size("kv_channels");
    auto& mlp = std::get<Mlp>(layer.feed_forward);
    if (mlp.width % 2 != 0) config.text().at("intermediate_size").fail("an even number (both MLP branches together)");
    mlp.width /= 2;
    config.note("intermediate_size holds both MLP branches; each is half as wide");
  }
  return decoder(config, layer);
}

Model read_qwen2(ConfigReader& config) {
  Layer layer = plain_layer(config);
  attention_of(layer).qkv_bias = true;  // the family has it with no key for it
  Model model = decoder(config, layer);
  apply_qwen_windows(config, model);
  add_draft_layers(config, model);
  return model;
}

Model read_qwen3(ConfigReader& config) {
  Layer layer = plain_layer(config);
  attention_of(layer).qk_norm = true;
  attention_of(layer).qkv_bias = attention_of(layer).output_bias = config.flag("attention_bias", false);
  Model model = decoder(config, layer);
  apply_qwen_windows(config, model);
  return model;
}

Model read_phi3(ConfigReader& config) {
  Model model = decoder(config, plain_layer(config));
  apply_windows(config, model);
  return model;
}

Model read_glm(ConfigReader& config) {
  Layer layer = plain_layer(config);
  attention_of(layer).qkv_bias = config.flag("attention_bias", false);
  if (!config.has("partial_rotary_factor")) attention_of(layer).rotary_dim = attention_of(layer).head_dim / 2;
  if (config.model_type() == "glm4") layer.norms = 4;
  return decoder(config, layer);
}

Model read_chatglm(ConfigReader& config) {
  Model model;
  model.hidden = config.size("hidden_size");
  model.vocabulary = config.size({"padded_vocab_size", "vocab_size"});
  model.max_positions = longest_context(config);
  model.tied_embeddings = tied_embeddings(config, false);
  Attention attention{.heads = config.size("num_attention_heads"),
                      .qkv_bias = config.flag("add_qkv_bias", config.flag("add_bias_linear", false)),
                      .output_bias = config.flag("add_bias_linear", false)};
  attention.head_dim = config.size("kv_channels");
  attention.rotary_dim = attention.head_dim / 2;
  attention.kv_heads =
      config.flag("multi_query_attention", false) ? config.size("multi_query_group_num") : attention.heads;
  check_head_groups(config, attention, "multi_query_group_num");
  const Mlp mlp{.width = config.size("ffn_hidden_size"), .bias = config.flag("add_bias_linear", false)};
  model.layers.assign(static_cast<size_t>(config.size("num_layers", ConfigReader::most_layers)),
                      {.mixer = attention, .feed_forward = mlp, .layer_norm = !config.flag("rmsnorm", true)});
  return model;
}

Model read_olmo2(ConfigReader& config) {
  Layer layer = plain_layer(config);
  attention_of(layer).qk_norm = attention_of(layer).qk_norm_whole = true;
  attention_of(layer).qkv_bias = attention_of(layer).output_bias = config.flag("attention_bias", false);
  Model model = decoder(config, layer);
  apply_windows(config, model);
  return model;
}

// Llama with full attention, and every fourth layer without positions.
Model read_smollm3(ConfigReader& config) {
  Layer layer = plain_layer(config);
  attention_of(layer).qkv_bias = attention_of(layer).output_bias = config.flag("attention_bias", false);
  std::get<Mlp>(layer.feed_forward).bias = config.flag("mlp_bias", false);
  Model model = decoder(config, layer, true);
  const std::vector<bool> rotary =
      rotary_layers(config, static_cast<int64_t>(model.layers.size()),
                    config.size_or("no_rope_layer_interval", 4, ConfigReader::most_layers));
  for (size_t i = 0; i < model.layers.size(); ++i) {
    if (!rotary[i]) attention_of(model.layers[i]).rotary_dim = 0;
  }
  apply_qwen_windows(config, model);
  return model;
}

}  // namespace foretoken
