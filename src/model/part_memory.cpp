#include "model/part_memory.h"

#include <algorithm>
#include <initializer_list>

#include "model/step_internal.h"
#include "model/weights.h"
#include "model/work.h"

namespace foretoken {
namespace step {
namespace {

struct MixerCut {
  const Rank& rank;

  void operator()(std::monostate&) const {}
  void operator()(Attention& a) const {
    a.heads /= rank.tensor;
    a.kv_heads = rank.kv_heads(a.kv_heads);
    if (a.indexer) a.indexer->heads = rank.kv_heads(a.indexer->heads);
  }
  void operator()(LatentAttention& a) const { a.heads /= rank.tensor; }
  void operator()(CompressedAttention& a) const {
    a.heads /= rank.tensor;
    a.output_groups /= rank.tensor;
  }
  void operator()(GatedDelta& a) const {
    a.key_heads /= rank.tensor;
    a.value_heads /= rank.tensor;
  }
  void operator()(Lightning& a) const { a.heads /= rank.tensor; }
  void operator()(Mamba2& a) const {
    a.heads /= rank.tensor;
    a.groups = rank.kv_heads(a.groups);
  }
  void operator()(ShortConvolution& a) const { a.width /= rank.tensor; }
};

// Queries of an attention core, over sequences and heads, and their scores.
struct CoreSize {
  double queries = 0, scores = 0;
};
struct CoreSizeOf {
  static CoreSize of(int64_t batch, int64_t heads, int64_t q_len, int64_t kv_len) {
    const double queries = number(batch) * number(heads) * number(q_len);
    return {.queries = queries, .scores = queries * number(kv_len)};
  }
  CoreSize operator()(const AttentionShape& s) const { return of(s.batch, s.heads, s.q_len, s.kv_len); }
  CoreSize operator()(const LatentAttentionShape& s) const { return of(s.batch, s.heads, s.q_len, s.kv_len); }
  template <class Shape>
  CoreSize operator()(const Shape&) const {
    return {};
  }
};

struct LiveBytes {
  double activation;

  double operator()(const GemmShape& s) const {
    return number(s.batch) * number(s.m) * (number(s.k) + number(s.n)) * activation;
  }
  double operator()(const MoeShape& s) const {
    const double width = number(s.inter) / number(s.tp) * (s.gated ? 3 : 2);
    return expert_load(s).pairs * (2 * number(s.hidden) + width) * activation;
  }
  double operator()(const ActivationShape& s) const {
    return number(s.rows) * number(s.width) * (s.gated ? 3 : 2) * activation;
  }
  double operator()(const SamplingShape& s) const {  // logits and their fp32 copy
    return number(s.rows) * number(s.vocabulary) * (activation + 4);
  }
  template <class Shape>
  double operator()(const Shape&) const {
    return 0;
  }
};

int blocks_of(const Layer& layer) {
  return (std::holds_alternative<std::monostate>(layer.mixer) ? 0 : 1) + (layer.cross_attention ? 1 : 0) +
         (std::holds_alternative<std::monostate>(layer.feed_forward) ? 0 : 1);
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_attention_output(std::string_view name) {
  return is_one_of(name, {"o_proj", "cross_o_proj"});
}

// Multiplies that read the output of the norm that opens their block.
bool reads_norm(std::string_view name) {
  return is_one_of(name, {"qkv_proj", "qkv_a_proj", "q_proj", "gate_up_proj", "up_proj", "router"});
}

// Of what an operator keeps, the share that computing a module again spares.
double spared_share(LayerModule module, const ForwardOperator& one) {
  const bool feeds_forward = one.part == StepPart::feed_forward, experts = one.part == StepPart::experts;
  const bool is_norm = std::holds_alternative<NormShape>(one.shape);
  switch (module) {
    case LayerModule::core_attn:
      return 0;  // known by the scores alone
    case LayerModule::mla_up_proj:
      return std::holds_alternative<LatentAttentionShape>(one.shape) ? 1 : 0;
    case LayerModule::layernorm:
      return reads_norm(one.name) && !one.is_adapter() ? 1 : 0;
    case LayerModule::moe_act: {
      const MoeShape* shape = std::get_if<MoeShape>(&one.shape);
      if (shape == nullptr) return 0;
      const double width = number(shape->inter) / number(shape->tp);
      return width / (number(shape->hidden) + width * (shape->gated ? 3 : 2));
    }
    case LayerModule::mlp:
      return feeds_forward && !reads_norm(one.name) && !is_norm ? 1 : 0;
    case LayerModule::moe:
      return experts && one.name != "router" && !is_norm ? 1 : 0;
    case LayerModule::shared_experts:
      return experts && one.name.starts_with("shared_") ? 1 : 0;
  }
  return 0;
}

void add_weights(PartMemory& part, const std::vector<Weight>& weights, const Rank& rank) {
  LocalWeights sum;
  for (const Weight& weight : weights) sum.add(weight, rank, 1);
  part.parameters += sum.shared;
  part.expert_parameters += sum.experts;
}

// Of a layer; norms and biases are vectors.
void add_layer_weights(PartMemory& part, const std::vector<Weight>& weights, const Rank& rank) {
  add_weights(part, weights, rank);
  LocalWeights vectors;
  for (const Weight& weight : weights) {
    if (weight.inputs == 1 && weight.cut != Cut::experts) vectors.add(weight, rank, 1);
  }
  part.plain_parameters += vectors.shared;
}

// Embedding, head and norms outside layers stay as they are wherever a base is quantized.
void add_plain_weights(PartMemory& part, const std::vector<Weight>& weights, const Rank& rank) {
  add_weights(part, weights, rank);
  part.plain_parameters = part.parameters;
}

class PartCounter {
 public:
  PartCounter(const Model& model, const StepRequest& request, const Rank& rank, const SavedTensors& saved)
      : model_(model), request_(request), rank_(rank), saved_(saved) {}

  PartMemory layer(const Layer& layer, const StackTokens& tokens) const {
    Writer writer(model_, request_, rank_, tokens);
    write_layer(writer, layer);
    const double stream = number(writer.stream_rows()) * number(model_.hidden);
    const std::vector<ForwardOperator> operators = writer.take();
    PartMemory part;
    add_operators(part, operators);
    if (!saved_.flash_attention) write_out_scores(part, operators, writer.activation_bytes());
    part.by_module[static_cast<size_t>(LayerModule::core_attn)] = part.scores;
    if (saved_.hidden_masks) part.saved += Bytes(stream * blocks_of(layer));
    part.input = Bytes(stream * std::max(1, layer.hyper_streams) * writer.activation_bytes());
    part.op_kept = std::min(part.saved, part.input + kept_outputs(operators, writer.activation_bytes()));
    add_layer_weights(part, layer_weights(model_, local_layer(layer, rank_)), rank_);
    return part;
  }

  // Equal layers are counted once.
  std::vector<PartMemory> layers(std::span<const Layer> layers, const StackTokens& tokens) const {
    std::vector<LayerCount> distinct = distinct_layers(layers);
    std::vector<PartMemory> known;
    known.reserve(distinct.size());
    for (const LayerCount& group : distinct) known.push_back(layer(*group.layer, tokens));
    std::vector<PartMemory> parts;
    parts.reserve(layers.size());
    for (const Layer& layer : layers) {
      const auto found = std::find_if(distinct.begin(), distinct.end(),
                                      [&](const LayerCount& group) { return *group.layer == layer; });
      parts.push_back(known[static_cast<size_t>(found - distinct.begin())]);
    }
    return parts;
  }

  // Operators outside the layers.
  template <class Write>
  void add(PartMemory& part, const StackTokens& tokens, const Write& write) const {
    Writer writer(model_, request_, rank_, tokens);
    write(writer);
    add_operators(part, writer.take());
  }

  void add_embedding(PartMemory& part, const StackTokens& tokens) const {
    add(part, tokens, write_embedding);
    if (!saved_.hidden_masks) return;
    const Writer writer(model_, request_, rank_, tokens);
    part.saved += Bytes(number(writer.stream_rows()) * number(model_.hidden));
  }

 private:
  // The softmax stays, and with dropout its mask and output, 5 bytes for each score (arXiv 2205.05198, section 4.1), in
  // place of one sum for each query.
  void write_out_scores(PartMemory& part, std::span<const ForwardOperator> operators, double activation) const {
    constexpr double sum_bytes = 4;
    const double score_bytes = (saved_.score_masks ? 2 * activation + 1 : activation) + saved_.beside.score;
    for (const ForwardOperator& one : operators) {
      const CoreSize core = std::visit(CoreSizeOf{}, one.shape);
      part.saved -= Bytes(core.queries * sum_bytes * number(one.count));
      part.scores += Bytes(core.scores * score_bytes * number(one.count));
    }
    part.saved += part.scores;
  }

  // Outputs of every other multiply and of the attention core, without its scores.
  Bytes kept_outputs(std::span<const ForwardOperator> operators, double activation) const {
    double kept = 0;
    for (const ForwardOperator& one : operators) {
      if (one.is_adapter()) continue;
      if (const GemmShape* gemm = std::get_if<GemmShape>(&one.shape)) {
        kept += 0.5 * number(one.count * gemm->batch * gemm->m) * number(gemm->n) * activation;
      } else if (const MoeShape* experts = std::get_if<MoeShape>(&one.shape)) {
        const double widths = number(experts->inter) / number(experts->tp) * (experts->gated ? 2 : 1);
        kept += 0.5 * number(one.count) * expert_load(*experts).pairs * (widths + number(experts->hidden)) * activation;
      } else if (const AttentionShape* core = std::get_if<AttentionShape>(&one.shape)) {
        const int64_t value = core->value_dim > 0 ? core->value_dim : core->head_dim;
        kept += number(one.count * core->batch * core->q_len * core->heads) * (number(value) * activation + 4);
      } else if (const LatentAttentionShape* latent = std::get_if<LatentAttentionShape>(&one.shape)) {
        kept += number(one.count * latent->batch * latent->q_len * latent->heads) *
                (number(latent->value_dim) * activation + 4);
      }
    }
    return Bytes(kept);
  }

  // What is kept of the inputs of a layer's multiplies in the format they are multiplied in. An attention's output
  // stays in its own for its backward pass too.
  double saved_bytes_of(const ForwardOperator& one) const {
    const bool in_layer = one.part != StepPart::head && one.part != StepPart::embedding;
    if (saved_.linear_input_bytes == 0 || !in_layer || one.saved_bytes == 0 || one.is_adapter()) return one.saved_bytes;
    const double share = saved_.linear_input_bytes / bytes_per_element(model_.dtype);
    if (const MoeShape* experts = std::get_if<MoeShape>(&one.shape)) {
      const double width = number(experts->inter) / number(experts->tp);
      const double inputs = number(experts->hidden) + width, all = inputs + width * (experts->gated ? 2 : 1);
      return one.saved_bytes * (1 - (1 - share) * inputs / all);
    }
    if (!std::holds_alternative<GemmShape>(one.shape) || one.name == "router" || one.name == "draft_proj") {
      return one.saved_bytes;
    }
    return one.saved_bytes * (is_attention_output(one.name) ? 1 + share : share);
  }

  // What stays of one call beyond what fused kernels keep.
  double beside_bytes_of(const ForwardOperator& one) const {
    if (one.is_adapter()) return 0;
    const SavedBeside& beside = saved_.beside;
    const bool frozen = request_.lora.rank > 0;
    if (const auto* norm = std::get_if<NormShape>(&one.shape)) {
      // A layer norm is one kernel in eager software too.
      const double own = norm->layer_norm ? 0 : frozen ? beside.frozen_norm : beside.norm;
      return number(norm->rows) * number(norm->width) * (own + (frozen ? beside.adapter : beside.stream));
    }
    const auto gated = [&](bool is_gated) { return beside.activation + (is_gated ? beside.gate : 0); };
    if (const auto* experts = std::get_if<MoeShape>(&one.shape)) {
      const double width = number(experts->inter) / number(experts->tp);
      return expert_load(*experts).pairs * (number(experts->hidden) * beside.routed + width * gated(experts->gated));
    }
    const auto* activation = std::get_if<ActivationShape>(&one.shape);
    if (activation == nullptr) return 0;
    return number(activation->rows) * number(activation->width) * gated(activation->gated);
  }

  void add_operators(PartMemory& part, std::span<const ForwardOperator> operators) const {
    for (const ForwardOperator& one : operators) {
      part.working = std::max(part.working, Bytes(live_bytes(one.shape, bytes_per_element(model_.dtype))));
      const bool is_loss = one.part == StepPart::head && std::holds_alternative<SoftmaxShape>(one.shape);
      const Bytes saved((saved_bytes_of(one) + beside_bytes_of(one)) * number(one.count));
      (is_loss ? part.logits : part.saved) += saved;
      for (size_t i = 0; i < layer_module_count; ++i) {
        part.by_module[i] += spared_share(static_cast<LayerModule>(i), one) * saved;
      }
    }
    part.adapter_parameters += adapter_parameters(operators);
  }

  const Model& model_;
  const StepRequest& request_;
  const Rank& rank_;
  const SavedTensors& saved_;
};

}  // namespace

Layer local_layer(Layer layer, const Rank& rank) {
  std::visit(MixerCut{rank}, layer.mixer);
  if (layer.cross_attention) MixerCut{rank}(*layer.cross_attention);
  if (Mlp* mlp = std::get_if<Mlp>(&layer.feed_forward)) mlp->width /= rank.tensor;
  if (Moe* moe = std::get_if<Moe>(&layer.feed_forward)) {
    moe->width /= rank.expert_tensor;
    if (!rank.dispatches()) {
      moe->shared_width /= rank.tensor;
      moe->dense_width /= rank.tensor;
    }
  }
  return layer;
}

void LocalWeights::add(const Weight& weight, const Rank& rank, double times) {
  double parameters = weight.parameters() * times;
  if (weight.cut == Cut::experts) parameters *= expert_copies / number(rank.expert_ranks);
  if (weight.cut == Cut::vocabulary) {
    parameters *= number(ceil_divide(weight.outputs, rank.tensor)) / number(weight.outputs);
  }
  (weight.cut == Cut::experts ? experts : shared) += parameters;
  bytes += parameters * weight.bytes_each();
}

double live_bytes(const KernelShape& shape, double activation) {
  return std::visit(LiveBytes{activation}, shape);
}

double adapter_parameters(std::span<const ForwardOperator> forward) {
  double sum = 0;
  for (const ForwardOperator& one : forward) {
    const GemmShape* gemm = std::get_if<GemmShape>(&one.shape);
    if (one.is_adapter() && gemm != nullptr) sum += number(gemm->n) * number(gemm->k) * number(one.count);
  }
  return sum;
}

double embedding_table_parameters(const Model& model, const Rank& rank) {
  const int64_t width = model.embedding_width > 0 ? model.embedding_width : model.hidden;
  return number(ceil_divide(model.vocabulary, rank.tensor)) * number(width);
}

}  // namespace step

namespace {

constexpr std::string_view module_names[] = {"core_attn", "mla_up_proj", "layernorm",     "moe_act",
                                             "mlp",       "moe",         "shared_experts"};
static_assert(std::size(module_names) == layer_module_count);

// Of the forward call, what computing one module again repeats.
double repeated_share_of(LayerModule module, std::string_view name, StepPart part) {
  const bool of_block = part == StepPart::communication && name.starts_with("tp_");  // two blocks in a layer
  switch (module) {
    case LayerModule::core_attn:
      return name.starts_with("attention") ? 1 : 0;
    case LayerModule::mla_up_proj:
      return name == "q_b_proj" || name == "kv_b_proj" || name == "rope" ? 1 : 0;
    case LayerModule::layernorm:
      return name == "input_norm" || name == "post_attention_norm" ? 1 : 0;
    case LayerModule::moe_act:
      return 0;  // inside the grouped multiplies: their moves have it
    case LayerModule::mlp:
      return part == StepPart::feed_forward && !name.ends_with("_norm") ? 1 : of_block ? 0.5 : 0;
    case LayerModule::moe:
      if (name.starts_with("ep_")) return 1;
      return part == StepPart::experts ? 1 : of_block ? 0.5 : 0;
    case LayerModule::shared_experts:
      return name.starts_with("shared_") ? 1 : 0;
  }
  return 0;
}

}  // namespace

std::string_view layer_module_name(LayerModule module) {
  return module_names[static_cast<size_t>(module)];
}
std::optional<LayerModule> layer_module_from_name(std::string_view name) {
  const auto* found = std::find(std::begin(module_names), std::end(module_names), name);
  if (found == std::end(module_names)) return std::nullopt;
  return static_cast<LayerModule>(found - std::begin(module_names));
}
std::vector<std::string> layer_module_names() {
  return {std::begin(module_names), std::end(module_names)};
}

std::string layer_modules_text(const LayerModules& modules) {
  std::string text;
  for (size_t i = 0; i < layer_module_count; ++i) {
    if (!modules.has(static_cast<LayerModule>(i))) continue;
    if (!text.empty()) text += ", ";
    text += module_names[i];
  }
  return text;
}

// Computing all of an expert block again includes its activation and its shared experts.
Bytes PartMemory::spared(const LayerModules& modules) const {
  Bytes sum;
  for (size_t i = 0; i < layer_module_count; ++i) {
    const auto module = static_cast<LayerModule>(i);
    const bool included = module == LayerModule::moe_act || module == LayerModule::shared_experts;
    if (modules.has(module) && !(included && modules.has(LayerModule::moe))) sum += by_module[i];
  }
  return sum;
}

bool ends_layer(std::string_view name, StepPart part) {
  return part == StepPart::feed_forward && name == "down_proj";
}

double repeated_share(const LayerModules& modules, std::string_view name, StepPart part) {
  double share = 0;
  for (size_t i = 0; i < layer_module_count; ++i) {
    const auto module = static_cast<LayerModule>(i);
    if (modules.has(module)) share = std::max(share, repeated_share_of(module, name, part));
  }
  return share;
}

ModelParts model_parts(const Model& model, const StepRequest& request, const ParallelPlan& plan,
                       const SavedTensors& saved) {
  using namespace step;
  const Rank rank = make_rank(plan);
  const StackTokens tokens = decoder_tokens(model, request, rank);
  const PartCounter counter(model, request, rank, saved);
  ModelParts parts;
  parts.layers = counter.layers(model.layers, tokens);
  parts.draft_layers = counter.layers(model.draft_layers, tokens);
  add_plain_weights(parts.embedding, embedding_weights(model), rank);
  add_plain_weights(parts.head, head_weights(model), rank);
  counter.add_embedding(parts.embedding, tokens);
  counter.add(parts.head, tokens, write_head);
  if (!model.encoder_layers.empty()) {
    const StackTokens encoder = encoder_tokens(request, tokens);
    parts.encoder_layers = counter.layers(model.encoder_layers, encoder);
    counter.add_embedding(parts.embedding, encoder);
    counter.add(parts.embedding, encoder, [](Writer& writer) { write_final_norm(writer, "encoder_final_norm"); });
  }
  if (model.has_head && model.tied_embeddings) parts.tied_table = embedding_table_parameters(model, rank);
  return parts;
}

}  // namespace foretoken
