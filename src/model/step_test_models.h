// Small hand-made models and sums over operators, for the tests of a step.
#pragma once

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "model/model_config.h"
#include "model/step.h"
#include "model/work.h"

namespace foretoken::step_test {

inline Model base_model(const char* name) {
  return {.name = name, .hidden = 1024, .vocabulary = 32000, .max_positions = 8192};
}

// The layer with experts of its own where it uses those of another one: what it multiplies by.
inline Layer with_own_experts(Layer layer) {
  if (auto* moe = std::get_if<Moe>(&layer.feed_forward)) moe->reuses_experts = false;
  return layer;
}

inline Model llama_like() {
  Model model = base_model("llama-like");
  const Layer layer{.mixer = Attention{.heads = 16, .kv_heads = 4, .head_dim = 64, .rotary_dim = 64},
                    .feed_forward = Mlp{.width = 2816}};
  model.layers.assign(10, layer);
  return model;
}

inline Model mixtral_like() {
  Model model = base_model("mixtral-like");
  const Layer layer{.mixer = Attention{.heads = 16, .kv_heads = 4, .head_dim = 64, .rotary_dim = 64},
                    .feed_forward = Moe{.experts = 8, .top_k = 2, .width = 1536, .shared_width = 768}};
  model.layers.assign(6, layer);
  return model;
}

inline Model deepseek_like() {
  Model model = base_model("deepseek-like");
  const LatentAttention latent{
      .heads = 16, .query_rank = 384, .latent_dim = 128, .nope_dim = 64, .rope_dim = 32, .value_dim = 64};
  model.layers.assign(1, Layer{.mixer = latent, .feed_forward = Mlp{.width = 2816}});
  model.layers.resize(
      5, Layer{.mixer = latent, .feed_forward = Moe{.experts = 16, .top_k = 4, .width = 512, .shared_width = 512}});
  return model;
}

inline Model sparse_deepseek_like() {
  Model model = deepseek_like();
  model.name = "sparse-deepseek-like";
  for (Layer& layer : model.layers) {
    std::get<LatentAttention>(layer.mixer).indexer = SparseIndexer{.heads = 8, .head_dim = 64, .top_k = 64};
  }
  return model;
}

inline Model hybrid_like() {
  Model model = base_model("hybrid-like");
  const Mamba2 mamba{.heads = 32, .head_dim = 64, .state = 64, .groups = 4};
  const GatedDelta delta{.key_heads = 8, .value_heads = 16, .key_dim = 64, .value_dim = 64};
  const Attention full{.heads = 16, .kv_heads = 4, .head_dim = 64, .rotary_dim = 64, .output_gate = true};
  for (int i = 0; i < 2; ++i) {
    model.layers.push_back({.mixer = mamba, .norms = 1});
    model.layers.push_back({.feed_forward = Mlp{.width = 2048, .gated = false}, .norms = 1});
    model.layers.push_back({.mixer = delta, .feed_forward = Mlp{.width = 2048}});
    model.layers.push_back({.mixer = full, .feed_forward = Mlp{.width = 2048}});
  }
  return model;
}

// Short convolutions, gates for each head, full-rank KDA, and a layer that reads the keys another one chose.
inline Model convolution_like() {
  Model model = base_model("convolution-like");
  const LatentAttention choosing{.heads = 16,
                                 .latent_dim = 128,
                                 .nope_dim = 64,
                                 .rope_dim = 32,
                                 .value_dim = 64,
                                 .head_gate = true,
                                 .indexer = SparseIndexer{.heads = 8, .head_dim = 64, .top_k = 64}};
  LatentAttention reading = choosing;
  reading.indexer->reused = true;
  const GatedDelta kda{.per_channel_gate = true,
                       .key_heads = 16,
                       .value_heads = 16,
                       .key_dim = 64,
                       .value_dim = 64,
                       .full_rank_gate = true,
                       .full_rank_decay = true};
  const Attention gated{.heads = 16, .kv_heads = 4, .head_dim = 64, .rotary_dim = 64, .head_gate = true};
  for (const Mixer& mixer :
       {Mixer(ShortConvolution{.width = 1024}), Mixer(kda), Mixer(gated), Mixer(choosing), Mixer(reading)}) {
    model.layers.push_back({.mixer = mixer, .feed_forward = Mlp{.width = 2048}});
  }
  return model;
}

inline Model bert_like() {
  Model model = base_model("bert-like");
  model.position_rows = 512;
  model.segment_rows = 2;
  model.tied_embeddings = true;
  model.final_norm = false;
  model.embedding_norm = true;
  model.head_transform = true;
  const Layer layer{.mixer = Attention{.heads = 16, .kv_heads = 16, .head_dim = 64, .causal = false},
                    .feed_forward = Mlp{.width = 4096, .gated = false},
                    .layer_norm = true};
  model.layers.assign(4, layer);
  return model;
}

inline Model t5_like() {
  Model model = base_model("t5-like");
  model.tied_embeddings = true;
  const Attention encoder{.heads = 16, .kv_heads = 16, .head_dim = 64, .causal = false};
  Attention decoder = encoder;
  decoder.causal = true;
  model.encoder_layers.assign(3, Layer{.mixer = encoder, .feed_forward = Mlp{.width = 2816}});
  model.layers.assign(
      3, Layer{.mixer = decoder, .cross_attention = encoder, .feed_forward = Mlp{.width = 2816}, .norms = 3});
  return model;
}

inline std::vector<Model> hand_made_models() {
  return {llama_like(),  mixtral_like(),     deepseek_like(), sparse_deepseek_like(),
          hybrid_like(), convolution_like(), bert_like(),     t5_like()};
}

inline std::vector<Model> catalogue_models() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(FORETOKEN_SOURCE_DIR) / "data/models")) {
    if (entry.path().extension() == ".json" && entry.path().filename() != "index.json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<Model> models;
  models.reserve(files.size());
  for (const std::filesystem::path& file : files) models.push_back(read_model_config(file));
  return models;
}

inline bool accepts(const Model& model, const StepRequest& request, const ParallelPlan& plan) {
  try {
    check_step(model, request, plan);
    return true;
  } catch (const InputError&) {
    return false;
  }
}

// FLOPs of the operators a predicate picks, over their counts.
inline double flops_of(const std::vector<Operator>& operators, const std::function<bool(const Operator&)>& picks) {
  double sum = 0;
  for (const Operator& one : operators) {
    if (picks(one)) sum += count_work(one.shape).flops.value() * static_cast<double>(one.count);
  }
  return sum;
}

template <class Shape>
bool is(const Operator& one) {
  return std::holds_alternative<Shape>(one.shape);
}

// Multiplies by weights: GEMMs except the scores of a sparse indexer, and the factors absorbed around latent decode.
inline bool multiplies_weights(const Operator& one) {
  return (is<GemmShape>(one) && !one.name.starts_with("index_scores")) || is<LatentProjectionShape>(one);
}

inline bool is_attention(const Operator& one) {
  return is<AttentionShape>(one) || is<LatentAttentionShape>(one);
}

inline const Operator* find_operator(const std::vector<Operator>& operators, std::string_view name) {
  for (const Operator& one : operators) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

inline int64_t calls_of(const std::vector<Operator>& operators, std::string_view name) {
  int64_t sum = 0;
  for (const Operator& one : operators) {
    if (one.name == name) sum += one.count;
  }
  return sum;
}

}  // namespace foretoken::step_test
