// Linear attention or state-space layers between attention layers.
#include <algorithm>

#include <fmt/format.h>

#include "model/config_parts.h"
#include "model/families/readers.h"

namespace foretoken {
namespace {

void check_value_heads(const ConfigReader& config, const GatedDelta& delta) {
  if (delta.value_heads % delta.key_heads == 0) return;
  config.text().at("linear_num_value_heads").fail(fmt::format("a multiple of the {} key heads", delta.key_heads));
}

// Nemotron's newer configs name each layer where the older ones have a letter.
std::string letters_of(const JsonView& words) {
  std::string letters;
  for (const JsonView& item : words.items()) {
    const std::string word = item.string();
    if (word == "mamba") {
      letters += 'M';
    } else if (word == "attention") {
      letters += '*';
    } else if (word == "mlp") {
      letters += '-';
    } else if (word == "moe") {
      letters += 'E';
    } else {
      item.fail("mamba, attention, mlp or moe");
    }
  }
  if (letters.empty()) words.fail("at least one layer");
  return letters;
}

}  // namespace

Model read_qwen3_5(ConfigReader& config) {
  Model model = start_model(config);
  Attention attention = grouped_attention(config, model.hidden);
  attention.qk_norm = true;
  attention.output_gate = config.flag("attn_output_gate", true);
  attention.qkv_bias = attention.output_bias = config.flag("attention_bias", false);
  const GatedDelta delta{.key_heads = config.size("linear_num_key_heads"),
                         .value_heads = config.size("linear_num_value_heads"),
                         .key_dim = config.size("linear_key_head_dim"),
                         .value_dim = config.size("linear_value_head_dim"),
                         .conv_kernel = config.size("linear_conv_kernel_dim", 1000)};
  check_value_heads(config, delta);

  FeedForward feed_forward;
  if (config.count_or("num_experts", 0) > 0) {
    Moe moe{.experts = config.size("num_experts"),
            .top_k = config.size("num_experts_per_tok"),
            .width = config.size("moe_intermediate_size"),
            .shared_width = config.count_or("shared_expert_intermediate_size", 0)};
    check_top_k(config, moe, "num_experts_per_tok");
    moe.shared_gate = moe.shared_width > 0;
    feed_forward = moe;
  } else {
    feed_forward = Mlp{.width = config.size("intermediate_size")};
  }

  // Intern-S2-Mobius: banks of experts that the layers use in turn (SGLang, models/interns2_mobius.py).
  const bool is_mobius = config.model_type().starts_with("interns2_mobius");
  const int64_t banks = is_mobius ? config.size_or("num_blocks", 4) : 0;
  const int64_t layers = layer_count(config);
  const auto types = config.per_layer_words("layer_types", layers, {"linear_attention", "full_attention"});
  const int64_t interval = config.size_or("full_attention_interval", 4, ConfigReader::most_layers);
  for (int64_t i = 0; i < layers; ++i) {
    const bool full = types ? (*types)[static_cast<size_t>(i)] == "full_attention" : (i + 1) % interval == 0;
    Layer layer{.feed_forward = feed_forward};
    if (full) {
      layer.mixer = attention;
    } else {
      layer.mixer = delta;
    }
    if (auto* moe = std::get_if<Moe>(&layer.feed_forward)) moe->reuses_experts = banks > 0 && i >= banks;
    model.layers.push_back(layer);
  }
  // The draft layer of Mobius has as many experts as a layer would have without the banks.
  if (auto* moe = std::get_if<Moe>(&feed_forward); moe != nullptr && is_mobius) {
    moe->experts = std::max(moe->top_k, moe->experts * banks / layers);
  }
  // Checkpoints of Qwen3-Next have one that their config does not count (vLLM, models/qwen3_next_mtp.py).
  const int64_t uncounted = config.model_type() == "qwen3_next" ? 1 : 0;
  const int64_t drafts = config.count_or("mtp_num_hidden_layers", uncounted, 100);
  model.draft_layers.assign(static_cast<size_t>(drafts),
                            draft_layer({.mixer = attention, .feed_forward = feed_forward}));
  const std::string type = config.model_type();
  if (type == "qwen3_5" || type == "qwen3_5_moe" || type == "interns2_mobius" || type == "minicpmv4_6")
    config.note("text tower only; the vision tower is not counted");
  return model;
}

// Layer numbers in linear_attn_config count from 1. Kimi-K3 adds to Kimi-Linear: experts on a narrower projection of
// the hidden state, a full-rank output gate, and a gate on latent attention. Source: the published modelling code as
// ported in public inference engines (vLLM, mlx).
Model read_kimi_linear(ConfigReader& config) {
  Model model = start_model(config);
  const bool is_k3 = config.model_type() == "kimi_k3";
  LatentAttention attention = latent_attention(config);
  attention.output_gate = config.flag("mla_use_output_gate", is_k3);

  const auto linear = config.inside("linear_attn_config");
  if (!linear) config.text().at("linear_attn_config");
  const int64_t heads = linear->size("num_heads");
  const int64_t head_dim = linear->size("head_dim");
  const GatedDelta delta{.per_channel_gate = true,
                         .key_heads = heads,
                         .value_heads = heads,
                         .key_dim = head_dim,
                         .value_dim = head_dim,
                         .conv_kernel = linear->size_or("short_conv_kernel_size", 4, 1000),
                         .full_rank_gate = linear->flag("use_full_rank_gate", false)};
  const std::vector<int64_t> full_layers = linear->layer_numbers("full_attn_layers");
  if (full_layers.empty()) linear->text().at("full_attn_layers");

  Moe moe{.experts = config.count_or("num_experts", 0), .router_bias = true};
  Mlp dense;
  const int64_t first_dense = config.count_or("first_k_dense_replace", 0, ConfigReader::most_layers);
  const int64_t every = config.size_or("moe_layer_freq", 1, ConfigReader::most_layers);
  if (moe.experts > 0) {
    const char* top_k_key = config.has("num_experts_per_tok") ? "num_experts_per_tok" : "num_experts_per_token";
    const char* shared_key = config.has("n_shared_experts") ? "n_shared_experts" : "num_shared_experts";
    moe.width = config.size("moe_intermediate_size");
    moe.top_k = is_k3 ? config.size_or_note(top_k_key, 16) : config.size(top_k_key);
    moe.latent_width = is_k3 ? config.size_or_note("routed_expert_hidden_size", 3584)
                             : config.count_or("routed_expert_hidden_size", 0);
    const int64_t shared = is_k3 ? config.size_or_note(shared_key, 2) : config.count_or(shared_key, 0, 1000);
    moe.shared_width = shared * moe.width;
    if (config.has(top_k_key)) check_top_k(config, moe, top_k_key);
  }
  if (moe.experts == 0 || first_dense > 0 || every > 1) dense.width = config.size("intermediate_size");

  const int64_t layers = layer_count(config);
  for (int64_t i = 0; i < layers; ++i) {
    Layer layer;
    if (std::count(full_layers.begin(), full_layers.end(), i + 1) > 0) {
      layer.mixer = attention;
    } else {
      layer.mixer = delta;
    }
    if (moe.experts == 0 || i < first_dense || i % every != 0) {
      layer.feed_forward = dense;
    } else {
      layer.feed_forward = moe;
    }
    model.layers.push_back(layer);
  }
  if (is_k3) config.note("text tower only; the vision tower and the attention-residual mixes are not modeled");
  return model;
}

// One letter per layer: M Mamba-2, * attention (without positions), - MLP, E experts; each behind one norm.
Model read_nemotron_h(ConfigReader& config) {
  Model model = start_model(config);
  Attention attention = grouped_attention(config, model.hidden);
  attention.rotary_dim = 0;
  attention.qkv_bias = attention.output_bias = config.flag("attention_bias", false);
  const bool has_words = config.has("layers_block_type");
  const JsonView pattern_view = config.text().at(has_words ? "layers_block_type" : "hybrid_override_pattern");
  const std::string pattern = has_words ? letters_of(pattern_view) : pattern_view.string();
  if (!has_words || config.has("num_hidden_layers")) {
    const int64_t layers = layer_count(config);
    if (std::cmp_not_equal(pattern.size(), layers)) {
      pattern_view.fail(fmt::format("one letter for each of the {} layers", layers));
    }
  }
  for (const char kind : pattern) {
    Layer layer{.norms = 1};
    if (kind == 'M') {
      layer.mixer = Mamba2{.heads = config.size("mamba_num_heads"),
                           .head_dim = config.size("mamba_head_dim"),
                           .state = config.size("ssm_state_size"),
                           .groups = config.size("n_groups"),
                           .conv_kernel = config.size_or("conv_kernel", 4, 1000),
                           .chunk = config.size_or("chunk_size", 128)};
    } else if (kind == '*') {
      layer.mixer = attention;
    } else if (kind == '-') {
      layer.feed_forward =
          Mlp{.width = config.size("intermediate_size"), .gated = false, .bias = config.flag("mlp_bias", false)};
    } else if (kind == 'E') {
      Moe moe{.experts = config.size("n_routed_experts"),
              .top_k = config.size("num_experts_per_tok"),
              .width = config.size("moe_intermediate_size"),
              .gated = false,
              .router_bias = true,
              .latent_width = config.count_or("moe_latent_size", 0)};
      check_top_k(config, moe, "num_experts_per_tok");
      moe.shared_width = config.count_or("n_shared_experts", 0, 1000) *
                         config.count_or("moe_shared_expert_intermediate_size", moe.width);
      layer.feed_forward = moe;
    } else {
      pattern_view.fail("the letters M, *, - and E only");
    }
    model.layers.push_back(layer);
  }
  if (const int64_t drafts = config.count_or("num_nextn_predict_layers", 0, 100); drafts > 0) {
    const auto last = std::find_if(model.layers.rbegin(), model.layers.rend(), [](const Layer& layer) {
      return !std::holds_alternative<std::monostate>(layer.feed_forward);
    });
    if (last == model.layers.rend()) pattern_view.fail("an MLP or experts for the draft layer to repeat");
    model.draft_layers.assign(static_cast<size_t>(drafts),
                              draft_layer({.mixer = attention, .feed_forward = last->feed_forward}));
  }
  return model;
}

Model read_mamba2(ConfigReader& config) {
  Model model = start_model(config, true);
  const Mamba2 mamba{.heads = config.size("num_heads"),
                     .head_dim = config.size("head_dim"),
                     .state = config.size("state_size"),
                     .groups = config.size_or("n_groups", 1),
                     .conv_kernel = config.size_or("conv_kernel", 4, 1000),
                     .chunk = config.size_or("chunk_size", 256)};
  model.layers.assign(static_cast<size_t>(layer_count(config)), {.mixer = mamba, .norms = 1});
  return model;
}

}  // namespace foretoken
