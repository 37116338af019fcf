// Encoders, and encoder-decoders.
#include "model/config_parts.h"
#include "model/families/readers.h"

namespace foretoken {

Model read_bert(ConfigReader& config) {
  Model model = start_model(config, true);
  model.position_rows = model.max_positions;
  model.segment_rows = config.count_or("type_vocab_size", 2);
  model.embedding_norm = true;
  model.final_norm = false;  // each block ends in a norm
  model.head_transform = model.head_bias = true;
  Attention attention = grouped_attention(config, model.hidden);
  attention.rotary_dim = 0;
  attention.causal = false;
  attention.qkv_bias = attention.output_bias = true;
  model.layers.assign(static_cast<size_t>(layer_count(config)),
                      {.mixer = attention,
                       .feed_forward = Mlp{.width = config.size("intermediate_size"), .gated = false, .bias = true},
                       .layer_norm = true});
  config.note(
      "the masked-language-model head is counted except in embedding tasks, which do without it; the pooler is never "
      "counted");
  return model;
}

namespace {

// Which layers have experts: every `layers / sparse`-th, counted as the publisher's code does (1, 3, 5, ... for two).
bool is_sparse(int64_t layer, int64_t layers, int64_t sparse_layers) {
  if (sparse_layers == 0) return false;
  const int64_t step = layers / sparse_layers;
  return step == 1 || layer % step == 1;
}

}  // namespace

Model read_t5(ConfigReader& config) {
  Model model;
  model.hidden = config.size("d_model");
  model.vocabulary = config.size("vocab_size");
  model.max_positions = longest_context(config);
  model.tied_embeddings = tied_embeddings(config, true);
  const int64_t width = config.size("d_ff");
  const int64_t encoder_layers = config.size("num_layers", ConfigReader::most_layers);
  const int64_t decoder_layers = config.size_or("num_decoder_layers", encoder_layers, ConfigReader::most_layers);
  const auto activation = config.text().find("feed_forward_proj");
  const bool gated = activation && activation->string().starts_with("gated");

  Attention attention{.heads = config.size("num_heads"), .head_dim = config.size("d_kv")};
  attention.kv_heads = attention.heads;
  Moe moe{.experts = config.count_or("num_experts", 0), .top_k = 1, .width = width, .gated = false};
  if (moe.experts > 0) moe.capacity = config.size_or("expert_capacity", 64);  // 64: SwitchTransformersConfig
  const int64_t sparse_encoder = moe.experts > 0 ? config.count_or("num_sparse_encoder_layers", 3, encoder_layers) : 0;
  const int64_t sparse_decoder = moe.experts > 0 ? config.count_or("num_sparse_decoder_layers", 3, decoder_layers) : 0;
  const int64_t buckets = config.size_or("relative_attention_num_buckets", 32);

  const auto add = [&](std::vector<Layer>& stack, int64_t layers, int64_t sparse, bool causal) {
    for (int64_t i = 0; i < layers; ++i) {
      Attention self = attention;
      self.causal = causal;
      self.relative_buckets = i == 0 ? buckets : 0;  // the first layer holds the table for its stack
      Layer layer{.mixer = self, .feed_forward = Mlp{.width = width, .gated = gated}};
      if (is_sparse(i, layers, sparse)) layer.feed_forward = moe;
      if (causal) {
        layer.cross_attention = attention;
        layer.cross_attention->causal = false;
        layer.norms = 3;
      }
      stack.push_back(layer);
    }
  };
  add(model.encoder_layers, encoder_layers, sparse_encoder, false);
  add(model.layers, decoder_layers, sparse_decoder, true);
  return model;
}

}  // namespace foretoken
