// Gemma 1 to 4.
#include "model/config_parts.h"
#include "model/families/readers.h"

namespace foretoken {
namespace {

// True for each layer that attends inside a window: by layer_types, else all but every `period`-th.
std::vector<bool> sliding_layers(const ConfigReader& config, int64_t layers, int64_t period) {
  std::vector<bool> slides;
  const auto types = config.per_layer_words("layer_types", layers, {"sliding_attention", "full_attention"});
  for (int64_t i = 0; i < layers; ++i) {
    slides.push_back(types ? (*types)[static_cast<size_t>(i)] == "sliding_attention" : (i + 1) % period != 0);
  }
  return slides;
}

}  // namespace

Model read_gemma(ConfigReader& config) {
  Model model = start_model(config, true);
  model.layers.assign(static_cast<size_t>(layer_count(config)),
                      {.mixer = grouped_attention(config, model.hidden),
                       .feed_forward = Mlp{.width = config.size("intermediate_size")}});
  return model;
}

Model read_gemma2(ConfigReader& config) {
  Model model = start_model(config, true);
  Attention attention = grouped_attention(config, model.hidden);
  const int64_t window = config.size("sliding_window");
  for (const bool slides : sliding_layers(config, layer_count(config), 2)) {
    attention.window = slides ? window : 0;
    model.layers.push_back(
        {.mixer = attention, .feed_forward = Mlp{.width = config.size("intermediate_size")}, .norms = 4});
  }
  return model;
}

// Published nested configs leave out what equals the defaults of the publisher's config class.
Model read_gemma3(ConfigReader& config) {
  Model model;
  model.hidden = config.size("hidden_size");
  model.vocabulary = config.size_or_note("vocab_size", 262208);
  model.max_positions = longest_context(config);
  if (model.max_positions == 0) model.max_positions = 131072;
  model.tied_embeddings = tied_embeddings(config, true);
  Attention attention{.qk_norm = true};
  attention.heads = config.size_or_note("num_attention_heads", 8);
  attention.kv_heads = config.size_or_note("num_key_value_heads", 4);
  check_head_groups(config, attention,
                    config.has("num_key_value_heads") ? "num_key_value_heads" : "num_attention_heads");
  attention.head_dim = config.size_or_note("head_dim", 256);
  attention.rotary_dim = attention.head_dim;
  attention.qkv_bias = attention.output_bias = config.flag("attention_bias", false);
  const int64_t window = config.size("sliding_window");
  const int64_t period =
      config.size_or(config.has("_sliding_window_pattern") ? "_sliding_window_pattern" : "sliding_window_pattern", 6,
                     ConfigReader::most_layers);
  for (const bool slides : sliding_layers(config, layer_count(config), period)) {
    attention.window = slides ? window : 0;
    model.layers.push_back(
        {.mixer = attention, .feed_forward = Mlp{.width = config.size("intermediate_size")}, .norms = 4});
  }
  return model;
}

// Full layers have their own head size and, with attention_k_eq_v, their own KV heads and no V projection. The MoE
// block runs beside the dense MLP and brings three norms and a scale of the router's input.
Model read_gemma4(ConfigReader& config) {
  Model model = start_model(config, true);
  const Attention base = [&] {
    Attention attention = grouped_attention(config, model.hidden);
    attention.qk_norm = true;
    attention.qkv_bias = attention.output_bias = config.flag("attention_bias", false);
    attention.rotary_dim = attention.head_dim;
    return attention;
  }();
  const int64_t layers = layer_count(config);
  const int64_t window = config.size("sliding_window");
  const bool keys_are_values = config.flag("attention_k_eq_v", false);
  const int64_t reusing = config.count_or("num_kv_shared_layers", 0, layers);
  const bool double_wide = config.flag("use_double_wide_mlp", false);
  const int64_t width = config.size("intermediate_size");
  std::optional<Moe> moe;
  if (config.flag("enable_moe_block", false)) {
    moe = Moe{.experts = config.size("num_experts"),
              .top_k = config.size("top_k_experts"),
              .width = config.size("moe_intermediate_size"),
              .router_bias = true,  // a scale per expert
              .dense_width = width};
    check_top_k(config, *moe, "top_k_experts");
  }
  model.per_layer_input_width = config.count_or("hidden_size_per_layer_input", 0);
  const std::vector<bool> slides = sliding_layers(config, layers, 6);
  for (int64_t i = 0; i < layers; ++i) {
    Attention attention = base;
    attention.reuses_kv = i >= layers - reusing;
    if (slides[static_cast<size_t>(i)]) {
      attention.window = window;
    } else {
      attention.head_dim = config.size_or("global_head_dim", base.head_dim);
      attention.rotary_dim = attention.head_dim / 4;  // proportional RoPE turns a quarter
      attention.keys_are_values = keys_are_values;
      if (keys_are_values) attention.kv_heads = config.size_or("num_global_key_value_heads", base.kv_heads);
      if (config.has("num_global_key_value_heads")) check_head_groups(config, attention, "num_global_key_value_heads");
    }
    Layer layer{.mixer = attention,
                .feed_forward = Mlp{.width = attention.reuses_kv && double_wide ? 2 * width : width}};
    layer.norms = model.per_layer_input_width > 0 ? 5 : 4;
    if (moe) {
      layer.feed_forward = *moe;
      layer.norms += 4;
    }
    model.layers.push_back(layer);
  }
  config.note("text tower only; vision and audio towers are not counted");
  return model;
}

}  // namespace foretoken
