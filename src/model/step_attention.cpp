// Attention blocks over all heads, and cross attention, with their projections.
#include <algorithm>

#include "model/step_attention_parts.h"
#include "model/step_internal.h"

namespace foretoken::step {
namespace {

// Prompts and decodes in the one launch that engines make of them; `shape` gives the heads.
MixedAttentionShape mixed_batch(const AttentionShape& shape, const StackTokens& tokens) {
  MixedAttentionShape mixed = empty_batch_like(shape);
  mixed.add_prompts(tokens.prompts, tokens.prompt_len, tokens.prompt_keys());
  const int64_t keys = tokens.decode_keys();
  mixed.add_decodes(tokens.decodes, shape.window > 0 ? std::min(keys, shape.window) : keys);
  return mixed;
}

// Q, K, V and the softmax sums stay for the backward pass; the output is the next projection's input.
double saved_by_attention(const Writer& writer, const AttentionShape& shape) {
  const int64_t value = shape.value_dim > 0 ? shape.value_dim : shape.head_dim;
  const int64_t keys = std::min(shape.kv_len, shape.q_len);
  const double per_sequence = number(shape.q_len) * number(shape.heads * shape.head_dim) +
                              number(keys) * number(shape.kv_heads * (shape.head_dim + value));
  return number(shape.batch) *
         (per_sequence * writer.activation_bytes() + 4 * number(shape.q_len) * number(shape.heads));
}

void write_query_key_norm(Writer& writer, const Attention& a, int64_t heads, int64_t kv_heads) {
  const int64_t rows = writer.tokens().tokens();
  if (a.qk_norm_whole) {
    writer.norm("q_norm", attention_part, rows, heads * a.head_dim, false);
    writer.norm("k_norm", attention_part, rows, kv_heads * a.head_dim, false);
    // The norm is over the heads of all ranks, so the two sums of squares of each token are added up.
    if (writer.rank().tensor > 1) {
      writer.collective("qk_norm_all_reduce", CollectiveKind::all_reduce, ParallelAxis::tensor, writer.rank().tensor,
                        2.0 * static_cast<double>(rows) * sizeof(float));
    }
  } else {
    writer.norm("qk_norm", attention_part, rows * (heads + (a.reuses_kv ? 0 : kv_heads)), a.head_dim, false);
  }
}

void write_indexer(Writer& writer, SparseIndexer indexer) {
  const Model& model = writer.model();
  const int64_t rows = writer.tokens().tokens();
  indexer.heads = writer.rank().kv_heads(indexer.heads);
  writer.linear({.name = "indexer_q_proj",
                 .m = rows,
                 .n = indexer.heads * indexer.head_dim,
                 .k = model.hidden,
                 .scheme = model.mixer_scheme(),
                 .from_stream = true,
                 .shares_input = true});
  writer.linear({.name = "indexer_k_proj",
                 .m = rows,
                 .n = indexer.head_dim,
                 .k = model.hidden,
                 .scheme = model.mixer_scheme(),
                 .from_stream = true,
                 .shares_input = true});
  write_index_key(writer, indexer, rows);
  write_index_scores(writer, indexer, 1);
}

// Prompts and decodes of one layer, in one launch where the engine makes one of them.
void write_attention_core(Writer& writer, AttentionShape shape) {
  const StackTokens& tokens = writer.tokens();
  const int64_t value_dim = shape.value_dim > 0 ? shape.value_dim : shape.head_dim;
  const double key_bytes = number(shape.kv_heads * (shape.head_dim + value_dim)) * writer.activation_bytes();
  const bool together = tokens.prompts > 0 && tokens.decodes > 0 && tokens.context_ranks == 1 && shape.causal;
  if (together) writer.add("attention", attention_part, mixed_batch(shape, tokens));
  if (tokens.prompts > 0 && !together) {
    if (tokens.context_ranks > 1) {
      gather_over_context(writer, number(tokens.prompts) * number(tokens.prompt_keys()) * key_bytes);
    }
    shape.phase = shape.causal ? AttentionPhase::prefill : AttentionPhase::encoder;
    shape.batch = tokens.prompts;
    for_prompt_pieces(tokens, shape.causal, shape.window > 0, [&](int64_t q_len, int64_t kv_len) {
      shape.q_len = q_len;
      shape.kv_len = kv_len;
      writer.add("attention", attention_part, shape, saved_by_attention(writer, shape));
    });
  }
  if (tokens.decodes > 0 && !together) {
    shape.phase = AttentionPhase::decode;
    shape.batch = tokens.decodes;
    shape.q_len = 1;
    shape.kv_len = tokens.local_decode_keys();
    writer.add("attention", attention_part, shape);
    if (tokens.context_ranks > 1) {  // every rank's part of each head, and its softmax sum
      gather_over_context(writer, number(tokens.context_ranks * tokens.decodes * shape.heads) *
                                      (number(value_dim) * writer.activation_bytes() + 4));
    }
  }
}

}  // namespace

void write_attention(Writer& writer, const Attention& a) {
  const Model& model = writer.model();
  const int64_t rows = writer.tokens().tokens();
  const int64_t heads = a.heads / writer.rank().tensor, kv_heads = writer.rank().kv_heads(a.kv_heads);
  const int64_t value_dim = a.value_dim > 0 ? a.value_dim : a.head_dim;
  const int64_t query_width = heads * a.head_dim * (a.output_gate ? 2 : 1);
  const int64_t kv_width = (a.reuses_kv ? 0 : kv_heads) * (a.head_dim + (a.keys_are_values ? 0 : value_dim));

  writer.linear({.name = "qkv_proj",
                 .m = rows,
                 .n = query_width + kv_width,
                 .k = model.hidden,
                 .scheme = model.mixer_scheme(),
                 .adapted = Adapted::attention,
                 .slices = a.reuses_kv         ? 1
                           : a.keys_are_values ? 2
                                               : 3,
                 .from_stream = true});
  if (a.qk_norm) write_query_key_norm(writer, a, heads, kv_heads);
  if (a.rotary_dim > 0) {
    writer.add(
        "rope", attention_part,
        RopeShape{
            .tokens = rows, .heads = heads, .kv_heads = kv_heads, .rotary_dim = a.rotary_dim, .dtype = model.dtype});
  }
  if (a.indexer) write_indexer(writer, *a.indexer);

  // A sparse query reads its top_k keys: as much work as a window of that size.
  const int64_t window = a.indexer ? a.indexer->top_k : a.window;
  const AttentionShape shape{.heads = heads,
                             .kv_heads = kv_heads,
                             .head_dim = a.head_dim,
                             .value_dim = a.value_dim,
                             .window = window,
                             .causal = a.causal,
                             .dtype = model.dtype,
                             .kv_dtype = writer.kv_dtype(),
                             .writes_kv = a.causal && !a.reuses_kv && !writer.training()};
  write_attention_core(writer, shape);
  if (a.head_gate) write_head_gate(writer, heads);
  if (a.output_gate || a.head_gate) writer.activation("output_gate", attention_part, rows, heads * value_dim, true);
  writer.linear({.name = "o_proj",
                 .m = rows,
                 .n = model.hidden,
                 .k = heads * value_dim,
                 .scheme = model.mixer_scheme(),
                 .adapted = Adapted::attention});
}

// Keys and values come from the encoder: computed once with the prompt, then only read.
void write_cross_attention(Writer& writer, const Attention& a) {
  const Model& model = writer.model();
  const StackTokens& tokens = writer.tokens();
  const int64_t heads = a.heads / writer.rank().tensor, kv_heads = writer.rank().kv_heads(a.kv_heads);
  const int64_t value_dim = a.value_dim > 0 ? a.value_dim : a.head_dim;
  const int64_t kv_width = kv_heads * (a.head_dim + value_dim);
  const int64_t encoder_rows = tokens.prompts * tokens.encoder_len;

  writer.linear({.name = "cross_q_proj",
                 .m = tokens.tokens(),
                 .n = heads * a.head_dim,
                 .k = model.hidden,
                 .scheme = model.mixer_scheme(),
                 .adapted = Adapted::attention,
                 .from_stream = true});
  AttentionShape shape{.heads = heads,
                       .kv_heads = kv_heads,
                       .head_dim = a.head_dim,
                       .value_dim = a.value_dim,
                       .kv_len = tokens.encoder_len,
                       .causal = false,
                       .dtype = model.dtype,
                       .kv_dtype = writer.kv_dtype()};
  if (tokens.prompts > 0) {
    writer.linear({.name = "cross_kv_proj",
                   .m = encoder_rows,
                   .n = kv_width,
                   .k = model.hidden,
                   .scheme = model.mixer_scheme(),
                   .adapted = Adapted::attention,
                   .slices = 2,
                   .shares_input = true});
    if (!writer.training()) {
      writer.add("cross_kv_write", attention_part,
                 KvWriteShape{.tokens = encoder_rows,
                              .values_per_token = kv_width,
                              .dtype = model.dtype,
                              .kv_dtype = writer.kv_dtype()});
    }
    shape.phase = AttentionPhase::encoder;  // prompt-shaped, no mask
    shape.batch = tokens.prompts;
    shape.q_len = tokens.prompt_len;
    const double saved_keys = number(encoder_rows) * number(kv_width) * writer.activation_bytes();
    const double saved_queries =
        number(tokens.prompts * tokens.prompt_len * heads) * (number(a.head_dim) * writer.activation_bytes() + 4);
    writer.add("cross_attention", attention_part, shape, saved_keys + saved_queries);
  }
  if (tokens.decodes > 0) {
    shape.phase = AttentionPhase::decode;
    shape.batch = tokens.decodes;
    shape.q_len = 1;
    writer.add("cross_attention", attention_part, shape);
  }
  writer.linear({.name = "cross_o_proj",
                 .m = tokens.tokens(),
                 .n = model.hidden,
                 .k = heads * value_dim,
                 .scheme = model.mixer_scheme(),
                 .adapted = Adapted::attention});
}

}  // namespace foretoken::step
