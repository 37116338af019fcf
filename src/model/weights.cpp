#include "model/weights.h"

#include <utility>

#include "base/error.h"
#include "model/number_formats.h"

namespace foretoken {
namespace {

// Collects the weights of one place. Matrices take the scheme of the linear layers unless said otherwise.
class WeightList {
 public:
  explicit WeightList(const Model& model)
      : linear_(model.scheme), plain_(plain_scheme(model.dtype)), int4_bytes_(model.int4_bytes) {}

  // Of the matrices that follow.
  void use_scheme(Scheme scheme) { linear_ = scheme; }

  Weight& matrix(std::string name, int64_t inputs, int64_t outputs, Cut cut) {
    return add({.name = std::move(name), .inputs = inputs, .outputs = outputs, .cut = cut, .scheme = linear_});
  }
  // A matrix that quantizers leave alone: small, or too sensitive.
  Weight& plain_matrix(std::string name, int64_t inputs, int64_t outputs, Cut cut = Cut::none) {
    return add({.name = std::move(name), .inputs = inputs, .outputs = outputs, .cut = cut, .scheme = plain_});
  }
  Weight& vector(std::string name, int64_t length, Cut cut = Cut::none, int64_t copies = 1) {
    return add({.name = std::move(name), .outputs = length, .copies = copies, .cut = cut, .scheme = plain_});
  }
  // A row-parallel matrix: its bias is added once, after the sum.
  void rows(const std::string& name, int64_t inputs, int64_t outputs, bool bias) {
    matrix(name, inputs, outputs, Cut::rows);
    if (bias) vector(name + "_bias", outputs);
  }
  void columns(const std::string& name, int64_t inputs, int64_t outputs, bool bias) {
    matrix(name, inputs, outputs, Cut::columns);
    if (bias) vector(name + "_bias", outputs, Cut::columns);
  }
  void norm(const std::string& name, int64_t width, bool with_bias, int64_t copies = 1) {
    if (copies == 0) return;
    vector(name, width, Cut::none, copies);
    if (with_bias) vector(name + "_bias", width, Cut::none, copies);
  }

  std::vector<Weight> take() { return std::move(weights_); }

 private:
  Weight& add(Weight weight) {
    weight.int4_bytes = int4_bytes_;
    return weights_.emplace_back(std::move(weight));
  }

  Scheme linear_, plain_;
  std::optional<double> int4_bytes_;
  std::vector<Weight> weights_;
};

int64_t value_dim(const Attention& attention) {
  return attention.value_dim > 0 ? attention.value_dim : attention.head_dim;
}

void add_mixer(WeightList&, const Model&, std::monostate) {}

void add_mixer(WeightList& list, const Model& model, const Attention& attention) {
  const int64_t queries = attention.heads * attention.head_dim * (attention.output_gate ? 2 : 1);
  const int64_t keys = attention.reuses_kv ? 0 : attention.kv_heads * attention.head_dim;
  const int64_t values =
      attention.reuses_kv || attention.keys_are_values ? 0 : attention.kv_heads * value_dim(attention);
  const int64_t kv_heads = attention.reuses_kv ? 0 : attention.kv_heads;
  list.matrix("qkv_proj", model.hidden, queries + keys + values, Cut::columns).kv_heads = kv_heads;
  if (attention.qkv_bias) list.vector("qkv_proj_bias", queries + keys + values, Cut::columns).kv_heads = kv_heads;
  list.rows("o_proj", attention.heads * value_dim(attention), model.hidden, attention.output_bias);
  if (attention.qk_norm && attention.qk_norm_whole) {
    list.vector("q_norm", attention.heads * attention.head_dim, Cut::columns);
    list.vector("k_norm", attention.kv_heads * attention.head_dim, Cut::columns).kv_heads = kv_heads;
  } else if (attention.qk_norm) {
    list.norm("q_norm", attention.head_dim, false);
    if (!attention.reuses_kv) list.norm("k_norm", attention.head_dim, false);
  }
  if (attention.sinks) list.vector("sinks", attention.heads, Cut::columns);
  if (attention.head_gate) list.plain_matrix("head_gate_proj", model.hidden, attention.heads, Cut::columns);
  if (attention.relative_buckets > 0) {
    list.plain_matrix("relative_bias", attention.relative_buckets, attention.heads, Cut::columns);
  }
  if (attention.indexer) {
    list.matrix("indexer_q_proj", model.hidden, attention.indexer->heads * attention.indexer->head_dim, Cut::columns)
        .kv_heads = attention.indexer->heads;
    list.matrix("indexer_k_proj", model.hidden, attention.indexer->head_dim, Cut::none);
    list.norm("indexer_norm", attention.indexer->head_dim, false, 2);
  }
}

void add_mixer(WeightList& list, const Model& model, const LatentAttention& attention) {
  const int64_t query_width = attention.heads * (attention.nope_dim + attention.rope_dim);
  if (attention.query_rank > 0) {
    list.matrix("q_a_proj", model.hidden, attention.query_rank, Cut::none);
    list.norm("q_a_norm", attention.query_rank, false);
    list.matrix("q_b_proj", attention.query_rank, query_width, Cut::columns);
  } else {
    list.matrix("q_proj", model.hidden, query_width, Cut::columns);
  }
  list.matrix("kv_a_proj", model.hidden, attention.latent_dim + attention.rope_dim, Cut::none);
  list.norm("kv_a_norm", attention.latent_dim, false);
  list.matrix("kv_b_proj", attention.latent_dim, attention.heads * (attention.nope_dim + attention.value_dim),
              Cut::columns);
  if (attention.output_gate) {
    list.matrix("output_gate_proj", model.hidden, attention.heads * attention.value_dim, Cut::columns);
  }
  if (attention.head_gate) list.plain_matrix("head_gate_proj", model.hidden, attention.heads, Cut::columns);
  list.rows("o_proj", attention.heads * attention.value_dim, model.hidden, false);
  if (attention.indexer && !attention.indexer->reused) {  // every rank needs the whole choice, so nothing is cut
    const SparseIndexer& indexer = *attention.indexer;
    list.matrix("indexer_q_proj", attention.query_rank > 0 ? attention.query_rank : model.hidden,
                indexer.heads * indexer.head_dim, Cut::none);
    list.matrix("indexer_k_proj", model.hidden, indexer.head_dim, Cut::none);
    list.norm("indexer_k_norm", indexer.head_dim, true);
    list.plain_matrix("indexer_weights_proj", model.hidden, indexer.heads);
  }
}

// Learned pooling of `ratio` keys into one; ratio 4 pools overlapping windows and is twice as wide.
void add_compressor(WeightList& list, const std::string& prefix, int64_t hidden, int64_t ratio, int64_t head_dim) {
  const int64_t width = compressor_overlap(ratio) * head_dim;
  list.plain_matrix(prefix + "compressor_kv", hidden, width);
  list.plain_matrix(prefix + "compressor_gate", hidden, width);
  list.plain_matrix(prefix + "compressor_positions", ratio, width);
  list.norm(prefix + "compressor_norm", head_dim, false);
}

void add_mixer(WeightList& list, const Model& model, const CompressedAttention& attention) {
  const int64_t width = attention.heads * attention.head_dim;
  list.matrix("q_a_proj", model.hidden, attention.query_rank, Cut::none);
  list.norm("q_a_norm", attention.query_rank, false);
  list.matrix("q_b_proj", attention.query_rank, width, Cut::columns);
  list.matrix("kv_proj", model.hidden, attention.head_dim, Cut::none);
  list.norm("kv_norm", attention.head_dim, false);
  list.matrix("o_a_proj", width / attention.output_groups, attention.output_rank, Cut::columns).copies =
      attention.output_groups;
  list.rows("o_b_proj", attention.output_groups * attention.output_rank, model.hidden, false);
  list.vector("sinks", attention.heads, Cut::columns);
  if (attention.ratio > 0) add_compressor(list, "", model.hidden, attention.ratio, attention.head_dim);
  if (attention.indexer) {
    const SparseIndexer& indexer = *attention.indexer;
    list.matrix("indexer_q_proj", attention.query_rank, indexer.heads * indexer.head_dim, Cut::none);
    list.plain_matrix("indexer_weights_proj", model.hidden, indexer.heads);
    add_compressor(list, "indexer_", model.hidden, attention.ratio, indexer.head_dim);
  }
}

void add_mixer(WeightList& list, const Model& model, const GatedDelta& delta) {
  const int64_t key_width = delta.key_heads * delta.key_dim;
  const int64_t value_width = delta.value_heads * delta.value_dim;
  const int64_t conv_width = 2 * key_width + value_width;
  if (delta.per_channel_gate) {
    list.matrix("in_proj", model.hidden, conv_width, Cut::columns);
    list.plain_matrix("beta_proj", model.hidden, delta.value_heads, Cut::columns);
    if (delta.full_rank_decay) {
      list.matrix("decay_proj", model.hidden, key_width, Cut::columns);
    } else {
      list.matrix("decay_a_proj", model.hidden, delta.key_dim, Cut::none);
      list.matrix("decay_b_proj", delta.key_dim, key_width, Cut::columns);
    }
    list.vector("dt_bias", key_width, Cut::columns);
    if (delta.full_rank_gate) {
      list.matrix("output_gate_proj", model.hidden, value_width, Cut::columns);
    } else {
      list.matrix("gate_a_proj", model.hidden, delta.value_dim, Cut::none);
      list.matrix("gate_b_proj", delta.value_dim, value_width, Cut::columns);
    }
  } else {
    list.matrix("in_proj", model.hidden, conv_width + value_width, Cut::columns);
    list.plain_matrix("in_proj_ba", model.hidden, 2 * delta.value_heads, Cut::columns);
    list.vector("dt_bias", delta.value_heads, Cut::columns);
  }
  list.plain_matrix("conv", delta.conv_kernel, conv_width, Cut::columns);
  list.vector("a_log", delta.value_heads, Cut::columns);
  list.norm("out_norm", delta.value_dim, false);
  list.rows("out_proj", value_width, model.hidden, false);
}

void add_mixer(WeightList& list, const Model& model, const Lightning& lightning) {
  const int64_t width = lightning.heads * lightning.head_dim;
  list.matrix("qkv_proj", model.hidden, 3 * width, Cut::columns);
  list.matrix("output_gate_proj", model.hidden, width, Cut::columns);
  list.vector("out_norm", width, Cut::columns);
  list.rows("out_proj", width, model.hidden, false);
}

void add_mixer(WeightList& list, const Model& model, const Mamba2& mamba) {
  const int64_t inner = mamba.heads * mamba.head_dim;
  const int64_t conv_width = inner + 2 * mamba.groups * mamba.state;
  list.matrix("in_proj", model.hidden, inner + conv_width + mamba.heads, Cut::columns);
  list.plain_matrix("conv", mamba.conv_kernel, conv_width, Cut::columns);
  list.vector("conv_bias", conv_width, Cut::columns);
  list.vector("a_log", mamba.heads, Cut::columns);
  list.vector("dt_bias", mamba.heads, Cut::columns);
  list.vector("skip", mamba.heads, Cut::columns);
  list.vector("out_norm", inner, Cut::columns);
  list.rows("out_proj", inner, model.hidden, false);
}

void add_mixer(WeightList& list, const Model& model, const ShortConvolution& convolution) {
  list.matrix("in_proj", model.hidden, 3 * convolution.width, Cut::columns);
  list.plain_matrix("conv", convolution.kernel, convolution.width, Cut::columns);
  list.rows("out_proj", convolution.width, model.hidden, false);
}

void add_cross_attention(WeightList& list, const Model& model, const Attention& attention) {
  const int64_t kv_width = attention.kv_heads * (attention.head_dim + value_dim(attention));
  list.columns("cross_q_proj", model.hidden, attention.heads * attention.head_dim, attention.qkv_bias);
  list.matrix("cross_kv_proj", model.hidden, kv_width, Cut::columns).kv_heads = attention.kv_heads;
  if (attention.qkv_bias) {
    list.vector("cross_kv_proj_bias", kv_width, Cut::columns).kv_heads = attention.kv_heads;
  }
  list.rows("cross_o_proj", attention.heads * value_dim(attention), model.hidden, attention.output_bias);
}

void add_feed_forward(WeightList&, const Model&, std::monostate) {}

void add_feed_forward(WeightList& list, const Model& model, const Mlp& mlp) {
  list.columns(mlp.gated ? "gate_up_proj" : "up_proj", model.hidden, mlp.gated ? 2 * mlp.width : mlp.width, mlp.bias);
  list.rows("down_proj", mlp.width, model.hidden, mlp.bias);
}

void add_feed_forward(WeightList& list, const Model& model, const Moe& moe) {
  if (!moe.reuses_experts) {
    list.plain_matrix("router", model.hidden, moe.experts);
    if (moe.bias || moe.router_bias) list.vector("router_bias", moe.experts);
  }
  if (moe.router_is_table) {  // 32-bit expert numbers, top_k per token of the vocabulary
    list.plain_matrix("router_table", moe.top_k, model.vocabulary).scheme = Scheme::fp32;
  }
  const int64_t inner = moe.latent_width > 0 ? moe.latent_width : model.hidden;
  if (moe.latent_width > 0) {
    list.matrix("latent_down_proj", model.hidden, inner, Cut::none);
    list.matrix("latent_up_proj", inner, model.hidden, Cut::none);
    list.norm("latent_norm", inner, false);
  }
  const auto add_experts = [&](const std::string& name, int64_t inputs, int64_t outputs) {
    if (moe.reuses_experts) return;
    Weight& weight = list.matrix(name, inputs, outputs, Cut::experts);
    weight.copies = moe.experts;
    weight.scheme = model.expert_scheme;
    if (moe.bias) list.vector(name + "_bias", outputs, Cut::experts, moe.experts);
  };
  add_experts(moe.gated ? "experts_gate_up" : "experts_up", inner, moe.gated ? 2 * moe.width : moe.width);
  add_experts("experts_down", moe.width, inner);
  if (moe.shared_width > 0) {
    list.matrix(moe.gated ? "shared_gate_up" : "shared_up", model.hidden,
                moe.gated ? 2 * moe.shared_width : moe.shared_width, Cut::columns);
    list.matrix("shared_down", moe.shared_width, model.hidden, Cut::rows);
    if (moe.shared_gate) list.plain_matrix("shared_gate", model.hidden, 1);
  }
  if (moe.dense_width > 0) add_feed_forward(list, model, Mlp{.width = moe.dense_width, .gated = moe.gated});
}

// Mixing of the residual streams before and after attention and feed-forward (mHC): `streams` weights to read, as many
// to write, and streams x streams between them, each from all streams together. Kept in fp32.
void add_hyper_connections(WeightList& list, int64_t hidden, int64_t streams) {
  const int64_t mixes = (2 + streams) * streams;
  Weight& projection = list.plain_matrix("hyper_proj", streams * hidden, mixes);
  projection.copies = 2;
  projection.scheme = Scheme::fp32;
  list.vector("hyper_base", mixes, Cut::none, 2).scheme = Scheme::fp32;
  list.vector("hyper_scale", 3, Cut::none, 2).scheme = Scheme::fp32;
}

bool uses_layer_norm(const Model& model) {
  return model.layers.front().layer_norm;
}

double parameters_of(const std::vector<Weight>& weights) {
  double sum = 0;
  for (const Weight& weight : weights) sum += weight.parameters();
  return sum;
}

// Parameters of a layer that no single token reaches: the experts it is not sent to.
double idle_parameters(const std::vector<Weight>& weights, const Layer& layer) {
  const auto* moe = std::get_if<Moe>(&layer.feed_forward);
  if (moe == nullptr) return 0;
  double experts = 0;
  for (const Weight& weight : weights) {
    if (weight.cut == Cut::experts) experts += weight.parameters();
  }
  return experts * (1 - static_cast<double>(moe->top_k) / static_cast<double>(moe->experts));
}

}  // namespace

std::vector<Weight> layer_weights(const Model& model, const Layer& layer) {
  WeightList list(model);
  list.norm("norm", model.hidden, layer.layer_norm, layer.norms);
  list.use_scheme(model.mixer_scheme());
  std::visit([&](const auto& mixer) { add_mixer(list, model, mixer); }, layer.mixer);
  if (layer.cross_attention) add_cross_attention(list, model, *layer.cross_attention);
  list.use_scheme(model.scheme);
  std::visit([&](const auto& part) { add_feed_forward(list, model, part); }, layer.feed_forward);
  if (layer.hyper_streams > 0) add_hyper_connections(list, model.hidden, layer.hyper_streams);
  if (model.per_layer_input_width > 0) {
    list.plain_matrix("per_layer_gate", model.hidden, model.per_layer_input_width);
    list.plain_matrix("per_layer_proj", model.per_layer_input_width, model.hidden);
  }
  if (layer.draft_projection) list.plain_matrix("draft_proj", 2 * model.hidden, model.hidden);
  return list.take();
}

std::vector<Weight> embedding_weights(const Model& model) {
  WeightList list(model);
  const int64_t width = model.embedding_width > 0 ? model.embedding_width : model.hidden;
  list.plain_matrix("embed_tokens", width, model.vocabulary, Cut::vocabulary);
  if (width != model.hidden) list.plain_matrix("project_in", width, model.hidden);
  if (model.position_rows > 0) list.plain_matrix("position_embeddings", model.hidden, model.position_rows);
  if (model.segment_rows > 0) list.plain_matrix("segment_embeddings", model.hidden, model.segment_rows);
  if (model.embedding_norm) list.norm("embedding_norm", model.hidden, uses_layer_norm(model));
  if (model.per_layer_input_width > 0) {
    const int64_t all_layers = model.per_layer_input_width * static_cast<int64_t>(model.layers.size());
    list.plain_matrix("per_layer_embeddings", all_layers, model.vocabulary, Cut::vocabulary);
    list.plain_matrix("per_layer_model_proj", model.hidden, all_layers);
    list.norm("per_layer_norm", model.per_layer_input_width, false);
  }
  return list.take();
}

std::vector<Weight> head_weights(const Model& model) {
  WeightList list(model);
  if (!model.encoder_layers.empty()) list.norm("encoder_norm", model.hidden, uses_layer_norm(model));
  if (model.final_norm) list.norm("final_norm", model.hidden, uses_layer_norm(model));
  if (const int64_t streams = model.layers.front().hyper_streams; streams > 0) {
    list.plain_matrix("hyper_head", streams * model.hidden, streams).scheme = Scheme::fp32;
    list.vector("hyper_head_base", streams + 1).scheme = Scheme::fp32;  // and one scale
  }
  if (!model.has_head) return list.take();
  const int64_t width = model.embedding_width > 0 ? model.embedding_width : model.hidden;
  if (width != model.hidden) list.plain_matrix("project_out", model.hidden, width);
  if (model.head_transform) {
    list.plain_matrix("head_transform", model.hidden, model.hidden);
    list.vector("head_transform_bias", model.hidden);
    list.norm("head_norm", model.hidden, uses_layer_norm(model));
  }
  list.plain_matrix("lm_head", width, model.vocabulary, Cut::vocabulary).copies = model.tied_embeddings ? 0 : 1;
  if (model.head_bias) list.vector("lm_head_bias", model.vocabulary, Cut::vocabulary);
  return list.take();
}

ParameterCount count_parameters(const Model& model) {
  ParameterCount count;
  count.total = parameters_of(embedding_weights(model)) + parameters_of(head_weights(model));
  double idle = 0;
  for (const auto* stack : {&model.encoder_layers, &model.layers}) {
    for (const Layer& layer : *stack) {
      const std::vector<Weight> weights = layer_weights(model, layer);
      count.total += parameters_of(weights);
      idle += idle_parameters(weights, layer);
    }
  }
  count.active = count.total - idle;
  for (const Layer& layer : model.draft_layers) count.draft += parameters_of(layer_weights(model, layer));
  return count;
}

Bytes weight_bytes(const Model& model) {
  Bytes total;
  const auto add = [&](const std::vector<Weight>& weights) {
    for (const Weight& weight : weights) total += Bytes(weight.parameters() * weight.bytes_each());
  };
  add(embedding_weights(model));
  for (const std::vector<Layer>* stack : {&model.encoder_layers, &model.layers}) {
    for (const Layer& layer : *stack) add(layer_weights(model, layer));
  }
  add(head_weights(model));
  return total;
}

}  // namespace foretoken
