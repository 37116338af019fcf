// Mixers with a fixed-size state: gated delta nets (GDN, KDA), lightning attention, Mamba-2, short convolutions.
#include "model/step_internal.h"

namespace foretoken::step {
namespace {

constexpr StepPart recurrent_part = StepPart::attention;

// The recurrence (or the convolution before it) over prompts, then over decodes. A context rank runs its part
// of the sequence after it got the state of the rank before.
void write_scan(Writer& writer, std::string_view name, LinearAttentionShape shape) {
  const StackTokens& tokens = writer.tokens();
  const bool recurrence = shape.stage == LinearAttentionStage::recurrence;
  shape.dtype = writer.model().dtype;
  const double keys = 2 * number(shape.key_heads * shape.key_dim);
  const double values = number(shape.value_heads * shape.value_dim);
  if (tokens.prompts > 0) {
    shape.batch = tokens.prompts;
    shape.seq_len = tokens.local_prompt_len();
    if (recurrence && tokens.context_ranks > 1) {
      writer.collective("cp_send_state", CollectiveKind::send_recv, ParallelAxis::context, 2,
                        4 * number(tokens.prompts) * values * number(shape.key_dim));
    }
    writer.add(name, recurrent_part, shape,
               number(tokens.prompt_tokens()) * (keys + values) * writer.activation_bytes());
  }
  if (tokens.decodes > 0) {
    shape.decode = true;
    shape.batch = tokens.decodes;
    shape.seq_len = 1;
    writer.add(name, recurrent_part, shape);
  }
}

void write_convolution_and_recurrence(Writer& writer, LinearAttentionShape shape) {
  shape.stage = LinearAttentionStage::convolution;
  write_scan(writer, "convolution", shape);
  shape.stage = LinearAttentionStage::recurrence;
  write_scan(writer, "recurrence", shape);
}

// The input projections of one mixer: all read the layer's input, kept once.
class Projections {
 public:
  explicit Projections(Writer& writer) : writer_(writer) {}

  void from_hidden(std::string_view name, int64_t width, int64_t slices = 1, bool plain = false) {
    add(name, width, writer_.model().hidden, slices, !first_, plain);
    first_ = false;
  }
  void add(std::string_view name, int64_t width, int64_t inputs, int64_t slices, bool shares_input,
           bool plain = false) {
    const Model& model = writer_.model();
    writer_.linear({.name = name,
                    .m = writer_.tokens().tokens(),
                    .n = width,
                    .k = inputs,
                    .scheme = plain ? plain_scheme(model.dtype) : model.mixer_scheme(),
                    .adapted = plain ? Adapted::no : Adapted::attention,
                    .slices = slices,
                    .from_stream = inputs == model.hidden,
                    .shares_input = shares_input});
  }

 private:
  Writer& writer_;
  bool first_ = true;
};

void write_output(Writer& writer, int64_t width) {
  writer.linear({.name = "out_proj",
                 .m = writer.tokens().tokens(),
                 .n = writer.model().hidden,
                 .k = width,
                 .scheme = writer.model().mixer_scheme(),
                 .adapted = Adapted::attention});
}

}  // namespace

void write_recurrent(Writer& writer, const GatedDelta& mixer) {
  const int64_t tensor = writer.rank().tensor, rows = writer.tokens().tokens();
  const int64_t key_heads = mixer.key_heads / tensor, value_heads = mixer.value_heads / tensor;
  const int64_t keys = key_heads * mixer.key_dim, values = value_heads * mixer.value_dim;
  const bool kda = mixer.per_channel_gate;
  Projections projections(writer);
  projections.from_hidden("in_proj", 2 * keys + values * (kda ? 1 : 2), kda ? 3 : 4);
  projections.from_hidden(kda ? "beta_proj" : "in_proj_ba", value_heads * (kda ? 1 : 2), 1, true);
  if (kda) {
    if (mixer.full_rank_decay) {
      projections.from_hidden("decay_proj", keys);
    } else {
      projections.from_hidden("decay_a_proj", mixer.key_dim);
      projections.add("decay_b_proj", keys, mixer.key_dim, 1, false);
    }
    if (mixer.full_rank_gate) {
      projections.from_hidden("output_gate_proj", values);
    } else {
      projections.from_hidden("gate_a_proj", mixer.value_dim);
      projections.add("gate_b_proj", values, mixer.value_dim, 1, false);
    }
  }
  write_convolution_and_recurrence(writer, {.kind = kda ? LinearAttentionKind::kda : LinearAttentionKind::gdn,
                                            .key_heads = key_heads,
                                            .key_dim = mixer.key_dim,
                                            .value_heads = value_heads,
                                            .value_dim = mixer.value_dim,
                                            .conv_kernel = mixer.conv_kernel});
  writer.norm("output_norm", recurrent_part, rows * value_heads, mixer.value_dim, false);
  writer.activation("output_gate", recurrent_part, rows, values, true);
  write_output(writer, values);
}

void write_recurrent(Writer& writer, const Lightning& mixer) {
  const int64_t rows = writer.tokens().tokens(), heads = mixer.heads / writer.rank().tensor;
  const int64_t width = heads * mixer.head_dim;
  Projections projections(writer);
  projections.from_hidden("qkv_proj", 3 * width, 3);
  projections.from_hidden("output_gate_proj", width);
  writer.activation("qkv_activation", recurrent_part, rows, 3 * width, false);
  write_scan(writer, "recurrence",
             {.kind = LinearAttentionKind::lightning,
              .key_heads = heads,
              .key_dim = mixer.head_dim,
              .value_heads = heads,
              .value_dim = mixer.head_dim,
              .conv_kernel = 0});
  writer.norm("output_norm", recurrent_part, rows, width, false);
  writer.activation("output_gate", recurrent_part, rows, width, true);
  write_output(writer, width);
}

void write_recurrent(Writer& writer, const Mamba2& mixer) {
  const int64_t rows = writer.tokens().tokens();
  const int64_t heads = mixer.heads / writer.rank().tensor, groups = writer.rank().kv_heads(mixer.groups);
  const int64_t width = heads * mixer.head_dim;
  Projections projections(writer);
  projections.from_hidden("in_proj", 2 * width + 2 * groups * mixer.state + heads);
  write_convolution_and_recurrence(writer, {.kind = LinearAttentionKind::mamba2,
                                            .key_heads = groups,
                                            .key_dim = mixer.state,
                                            .value_heads = heads,
                                            .value_dim = mixer.head_dim,
                                            .conv_kernel = mixer.conv_kernel,
                                            .chunk = mixer.chunk});
  writer.activation("output_gate", recurrent_part, rows, width, true);
  writer.norm("output_norm", recurrent_part, rows, width, false);
  write_output(writer, width);
}

// `width` channels between two gates (transformers, modeling_lfm2.py); keys and values of the shape only count them.
void write_recurrent(Writer& writer, const ShortConvolution& mixer) {
  const int64_t rows = writer.tokens().tokens(), width = mixer.width / writer.rank().tensor;
  Projections projections(writer);
  projections.from_hidden("in_proj", 3 * width, 3);
  writer.activation("input_gate", recurrent_part, rows, width, true);
  write_scan(writer, "convolution",
             {.kind = LinearAttentionKind::mamba2,
              .stage = LinearAttentionStage::convolution,
              .key_dim = width / 4,
              .value_dim = width - 2 * (width / 4),
              .conv_kernel = mixer.kernel});
  writer.activation("output_gate", recurrent_part, rows, width, true);
  write_output(writer, width);
}

}  // namespace foretoken::step
