#include "training/decoder_sizes.h"

#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace foretoken {
namespace {

void require_size(const DecoderSizes& sizes, bool holds, std::string path, int64_t value, std::string expected) {
  if (holds) return;
  throw InputError({.source = sizes.name,
                    .path = std::move(path),
                    .value = number_text(static_cast<double>(value)),
                    .expected = std::move(expected)});
}

void check_sizes(const DecoderSizes& sizes) {
  constexpr int64_t most = 100'000'000;
  const std::pair<const char*, int64_t> positive[] = {{"hidden size", sizes.hidden},    {"heads", sizes.heads},
                                                      {"KV heads", sizes.kv_heads},     {"head size", sizes.head_dim},
                                                      {"vocabulary", sizes.vocabulary}, {"positions", sizes.positions}};
  for (const auto& [name, value] : positive) {
    require_size(sizes, value >= 1 && value <= most, name, value, "a number from 1 to 100000000");
  }
  require_size(sizes, sizes.layers >= 1 && sizes.layers <= 10'000, "layers", sizes.layers, "a number from 1 to 10000");
  require_size(sizes, sizes.heads % sizes.kv_heads == 0, "KV heads", sizes.kv_heads,
               "a divisor of the number of heads");
  require_size(sizes, sizes.dense_layers >= 0 && sizes.dense_layers <= sizes.layers, "dense layers", sizes.dense_layers,
               "at most the number of layers");
  require_size(sizes, sizes.draft_layers >= 0 && sizes.draft_layers <= 16, "draft layers", sizes.draft_layers,
               "at most 16");
  require_size(sizes, sizes.experts >= 0 && sizes.experts <= most, "experts", sizes.experts, "0 or more");
  const bool has_dense = sizes.experts == 0 || sizes.dense_layers > 0;
  require_size(sizes, !has_dense || (sizes.ffn >= 1 && sizes.ffn <= most), "MLP width", sizes.ffn,
               "a number from 1 to 100000000");
  if (sizes.experts == 0) return;
  require_size(sizes, sizes.top_k >= 1 && sizes.top_k <= sizes.experts, "experts of a token", sizes.top_k,
               "a number from 1 to the number of experts");
  require_size(sizes, sizes.expert_ffn >= 1 && sizes.expert_ffn <= most, "expert width", sizes.expert_ffn,
               "a number from 1 to 100000000");
  require_size(sizes, sizes.shared_ffn >= 0 && sizes.shared_ffn <= most, "shared width", sizes.shared_ffn, "0 or more");
}

}  // namespace

Model decoder_model(const DecoderSizes& sizes) {
  check_sizes(sizes);
  Model model{.name = sizes.name,
              .family = sizes.latent_attention ? "deepseek_v3"
                        : sizes.gated          ? "llama"
                                               : "gpt2",
              .hidden = sizes.hidden,
              .vocabulary = sizes.vocabulary,
              .max_positions = sizes.positions,
              .position_rows = sizes.learned_positions ? sizes.positions : 0,
              .tied_embeddings = sizes.tied_embeddings};
  const Attention attention{.heads = sizes.heads,
                            .kv_heads = sizes.kv_heads,
                            .head_dim = sizes.head_dim,
                            .rotary_dim = sizes.learned_positions ? 0 : sizes.head_dim,
                            .qkv_bias = sizes.biases,
                            .output_bias = sizes.biases,
                            .qk_norm = sizes.qk_norm,
                            .sinks = sizes.sinks};
  const LatentAttention latent{.heads = sizes.heads, .query_rank = 1536};
  const Mlp dense{.width = sizes.ffn, .gated = sizes.gated, .bias = sizes.biases};
  const Moe experts{.experts = sizes.experts,
                    .top_k = sizes.top_k,
                    .width = sizes.expert_ffn,
                    .gated = sizes.gated,
                    .bias = sizes.biases,
                    .shared_width = sizes.shared_ffn};
  const auto layer = [&](int64_t index) {
    Layer one{.layer_norm = sizes.layer_norm};
    if (sizes.latent_attention) {
      one.mixer = latent;
    } else {
      Attention mixer = attention;
      if (index % 2 == 0) mixer.window = sizes.window;
      one.mixer = mixer;
    }
    if (sizes.experts > 0 && index >= sizes.dense_layers) {
      one.feed_forward = experts;
    } else {
      one.feed_forward = dense;
    }
    return one;
  };
  for (int64_t index = 0; index < sizes.layers; ++index) model.layers.push_back(layer(index));
  for (int64_t index = 0; index < sizes.draft_layers; ++index) {
    model.draft_layers.push_back(layer(sizes.layers + index));
    model.draft_layers.back().draft_projection = true;
  }
  return model;
}

}  // namespace foretoken
