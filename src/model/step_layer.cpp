// What surrounds the mixers: norms, residuals and collectives of a layer; embedding; head.
#include <algorithm>

#include "model/step_internal.h"

namespace foretoken::step {
namespace {

struct MixerWriter {
  Writer& writer;

  void operator()(const std::monostate&) const {}
  void operator()(const Attention& mixer) const { write_attention(writer, mixer); }
  void operator()(const LatentAttention& mixer) const { write_latent_attention(writer, mixer); }
  void operator()(const CompressedAttention& mixer) const { write_compressed_attention(writer, mixer); }
  void operator()(const GatedDelta& mixer) const { write_recurrent(writer, mixer); }
  void operator()(const Lightning& mixer) const { write_recurrent(writer, mixer); }
  void operator()(const Mamba2& mixer) const { write_recurrent(writer, mixer); }
  void operator()(const ShortConvolution& mixer) const { write_recurrent(writer, mixer); }
};

// Norms of the residual stream. The one that opens a block also adds the block before it to the stream, as engines fuse
// it; with hyper-connections the mixing does that.
class StreamNorms {
 public:
  StreamNorms(Writer& writer, const Layer& layer) : writer_(writer), layer_(layer), left_(layer.norms) {}

  void open(std::string_view name, StepPart part) {
    const bool adds = layer_.hyper_streams == 0;
    if (left_ > 0) {
      writer_.norm(name, part, writer_.stream_rows(), writer_.model().hidden, layer_.layer_norm, adds).first_norm =
          first_;
      --left_;
    } else if (adds) {
      writer_.add("residual_add", part, sum_of_two(writer_));
    }
    first_ = false;
  }
  void close(std::string_view name, StepPart part) {
    if (left_ <= 0) return;
    writer_.norm(name, part, writer_.stream_rows(), writer_.model().hidden, layer_.layer_norm);
    --left_;
  }
  int left() const { return left_; }

  static ElementwiseShape sum_of_two(const Writer& writer) {
    return {.elements = writer.stream_rows() * writer.model().hidden,
            .inputs = 2,
            .outputs = 1,
            .dtype = writer.model().dtype};
  }

 private:
  Writer& writer_;
  const Layer& layer_;
  int left_;
  bool first_ = true;
};

// Each layer adds its own narrow embedding of the token, gated by the stream (Gemma 4 small).
void write_per_layer_input(Writer& writer) {
  const Model& model = writer.model();
  const int64_t rows = writer.stream_rows(), width = model.per_layer_input_width;
  constexpr StepPart part = StepPart::feed_forward;
  writer.linear({.name = "per_layer_gate",
                 .m = rows,
                 .n = width,
                 .k = model.hidden,
                 .part = part,
                 .scheme = plain_scheme(model.dtype)});
  writer.activation("per_layer_activation", part, rows, width, true);
  writer.linear({.name = "per_layer_proj",
                 .m = rows,
                 .n = model.hidden,
                 .k = width,
                 .part = part,
                 .scheme = plain_scheme(model.dtype)});
}

}  // namespace

void write_layer(Writer& writer, const Layer& layer) {
  const bool mixes = !std::holds_alternative<std::monostate>(layer.mixer);
  const Mlp* mlp = std::get_if<Mlp>(&layer.feed_forward);
  const Moe* moe = std::get_if<Moe>(&layer.feed_forward);
  const int blocks = (mixes ? 1 : 0) + (layer.cross_attention ? 1 : 0) + (mlp != nullptr || moe != nullptr ? 1 : 0);
  const bool sandwich = layer.norms >= 2 * blocks;
  StreamNorms norms(writer, layer);

  if (layer.draft_projection) {
    writer.linear({.name = "draft_proj",
                   .m = writer.stream_rows(),
                   .n = writer.model().hidden,
                   .k = 2 * writer.model().hidden,
                   .scheme = plain_scheme(writer.model().dtype)});
  }
  const HyperConnectionShape mixing{
      .tokens = writer.stream_rows(), .streams = layer.hyper_streams, .hidden = writer.model().hidden, .sites = blocks};
  const double streams_bytes = number(writer.stream_rows()) * number(writer.model().hidden) *
                               number(layer.hyper_streams) * number(blocks) * writer.activation_bytes();
  if (layer.hyper_streams > 0) writer.add("hyper_pre", StepPart::attention, mixing, streams_bytes);

  if (layer.parallel && mixes && mlp != nullptr) {
    norms.open("input_norm", StepPart::attention);
    const bool one_input = norms.left() == 0;
    while (norms.left() > 0) norms.close("post_attention_norm", StepPart::feed_forward);
    writer.open_block();
    std::visit(MixerWriter{writer}, layer.mixer);
    write_mlp(writer, *mlp, one_input);
    writer.add("block_add", StepPart::feed_forward,
               ElementwiseShape{.elements = writer.tokens().tokens() * writer.model().hidden,
                                .inputs = 2,
                                .outputs = 1,
                                .dtype = writer.model().dtype});
    writer.close_block();
  } else {
    if (mixes) {
      norms.open("input_norm", StepPart::attention);
      writer.open_block();
      std::visit(MixerWriter{writer}, layer.mixer);
      writer.close_block();
      if (sandwich) norms.close("attention_output_norm", StepPart::attention);
    }
    if (layer.cross_attention) {
      norms.open("cross_norm", StepPart::attention);
      writer.open_block();
      write_cross_attention(writer, *layer.cross_attention);
      writer.close_block();
      if (sandwich) norms.close("cross_output_norm", StepPart::attention);
    }
    if (mlp != nullptr) {
      norms.open("post_attention_norm", StepPart::feed_forward);
      writer.open_block();
      write_mlp(writer, *mlp, false);
      writer.close_block();
    }
    if (moe != nullptr) {
      norms.open("post_attention_norm", StepPart::feed_forward);
      write_moe(writer, *moe);
    }
    while (norms.left() > 0) norms.close("block_output_norm", StepPart::feed_forward);
  }
  if (writer.model().per_layer_input_width > 0) write_per_layer_input(writer);

  HyperConnectionShape unmixing = mixing;
  unmixing.post = true;
  if (layer.hyper_streams > 0) writer.add("hyper_post", StepPart::attention, unmixing, streams_bytes / 2);
}

void write_embedding(Writer& writer) {
  constexpr StepPart part = StepPart::embedding;
  const Model& model = writer.model();
  const Rank& rank = writer.rank();
  const int64_t rows = writer.tokens().tokens();
  const int64_t width = model.embedding_width > 0 ? model.embedding_width : model.hidden;
  const auto look_up = [&](std::string_view name, int64_t table_width) {
    writer.add(name, part, EmbeddingShape{.tokens = rows, .width = table_width, .dtype = model.dtype},
               8 * number(rows));
  };
  look_up("embed_tokens", width);
  if (rank.tensor > 1) {  // each rank knows a part of the vocabulary
    writer.close_block();
    writer.last().backward = rank.sequence;  // the gradient is already everywhere unless cut by tokens
  }
  if (model.per_layer_input_width > 0) {
    const auto layers = static_cast<int64_t>(model.layers.size());
    look_up("per_layer_embeddings", layers * model.per_layer_input_width);
    writer.linear({.name = "per_layer_model_proj",
                   .m = rows,
                   .n = layers * model.per_layer_input_width,
                   .k = model.hidden,
                   .part = part,
                   .scheme = plain_scheme(model.dtype)});
  }
  if (model.position_rows > 0) look_up("position_embeddings", model.hidden);
  if (model.segment_rows > 0) look_up("segment_embeddings", model.hidden);
  const int64_t tables = (model.position_rows > 0 ? 1 : 0) + (model.segment_rows > 0 ? 1 : 0);
  if (tables > 0) {
    writer.add(
        "embedding_add", part,
        ElementwiseShape{
            .elements = writer.stream_rows() * model.hidden, .inputs = 1 + tables, .outputs = 1, .dtype = model.dtype});
  }
  if (width != model.hidden) {
    writer.linear({.name = "project_in",
                   .m = rows,
                   .n = model.hidden,
                   .k = width,
                   .part = part,
                   .scheme = plain_scheme(model.dtype)});
  }
  if (model.embedding_norm) {
    writer.norm("embedding_norm", part, writer.stream_rows(), model.hidden, model.layers.front().layer_norm);
  }
}

void write_final_norm(Writer& writer, std::string_view name) {
  const Model& model = writer.model();
  if (!model.final_norm) return;
  const Layer& last = model.layers.back();
  if (last.hyper_streams > 0) {
    writer.add(
        "hyper_head", StepPart::head,
        HyperConnectionShape{.tokens = writer.stream_rows(), .streams = last.hyper_streams, .hidden = model.hidden});
  }
  writer.norm(name, StepPart::head, writer.stream_rows(), model.hidden, last.layer_norm, last.hyper_streams == 0);
}

// Generation needs the logits of each sequence's last position only; training and encoders those of all tokens.
void write_head(Writer& writer) {
  constexpr StepPart part = StepPart::head;
  const Model& model = writer.model();
  const Rank& rank = writer.rank();
  const StackTokens& tokens = writer.tokens();
  write_final_norm(writer, "final_norm");
  if (!model.has_head || (writer.request().logits == Logits::none && !writer.training())) return;
  writer.open_block();
  if (writer.training() && rank.tensor > 1 && !rank.sequence) {  // the gradient of the head's input, summed
    writer.close_block();
    writer.last().forward = false;
  }

  const Scheme plain = plain_scheme(model.dtype);
  const bool every_token = writer.training() || model.is_encoder_only() || writer.request().logits == Logits::all;
  const int64_t rows = every_token ? tokens.tokens() : tokens.prompts + tokens.decodes;
  const int64_t width = model.embedding_width > 0 ? model.embedding_width : model.hidden;
  const int64_t vocabulary = ceil_divide(model.vocabulary, rank.tensor);
  if (model.head_transform) {
    writer.linear(
        {.name = "head_transform", .m = rows, .n = model.hidden, .k = model.hidden, .part = part, .scheme = plain});
    writer.activation("head_activation", part, rows, model.hidden, false);
    writer.norm("head_norm", part, rows, model.hidden, model.layers.back().layer_norm);
  }
  if (width != model.hidden) {
    writer.linear({.name = "project_out", .m = rows, .n = width, .k = model.hidden, .part = part, .scheme = plain});
  }
  writer.linear(
      {.name = "lm_head", .m = rows, .n = vocabulary, .k = width, .part = part, .scheme = plain, .from_stream = true});
  if (writer.training()) {
    writer.add("cross_entropy", part, SoftmaxShape{.rows = rows, .width = vocabulary, .dtype = DType::fp32},
               4 * number(rows) * number(vocabulary));
    if (rank.tensor > 1) {  // maximum, sum of exponentials, the target's logit
      ForwardOperator& sums = writer.collective("loss_all_reduce", CollectiveKind::all_reduce, ParallelAxis::tensor,
                                                rank.tensor, 4 * number(rows));
      sums.count = 3;
      sums.backward = false;
    }
    return;
  }
  if (rank.tensor > 1) {
    writer.collective("logits_all_gather", CollectiveKind::all_gather, ParallelAxis::tensor, rank.tensor,
                      number(rows) * number(vocabulary * rank.tensor) * writer.activation_bytes());
  }
  if (!every_token) writer.add("sampling", part, SamplingShape{.rows = rows, .vocabulary = model.vocabulary});
}

}  // namespace foretoken::step
