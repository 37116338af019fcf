// Attention blocks: dense, cross, latent (MLA) and compressed (DeepSeek-V4), with their projections.
#include <algorithm>
#include <cmath>

#include "model/step_internal.h"

namespace foretoken::step {
namespace {

constexpr StepPart attention_part = StepPart::attention;

void gather_over_context(Writer& writer, double bytes) {
  writer.collective("cp_all_gather", CollectiveKind::all_gather, ParallelAxis::context, writer.rank().context, bytes);
}

// Calls `visit(q_len, kv_len)` for each piece of a prompt this context rank computes: the whole prompt, or two chunks.
// Full causal attention: any rank's two chunks cost the same; those of rank 0 stand for all. A window or a key limit
// makes the middle ranks the busiest.
template <class Visit>
void for_prompt_pieces(const StackTokens& tokens, bool causal, bool limited, const Visit& visit) {
  if (tokens.context_ranks == 1) return visit(tokens.prompt_len, tokens.prompt_keys());
  if (!causal) return visit(tokens.local_prompt_len(), tokens.prompt_keys());
  const int64_t chunk = tokens.chunk(), ranks = tokens.context_ranks;
  const int64_t early = limited ? ranks : 1, late = limited ? ranks + 1 : 2 * ranks;
  visit(chunk, tokens.prompt_context + early * chunk);
  visit(chunk, tokens.prompt_context + late * chunk);
}

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

// Mean number of earlier keys a query of [kv_len - q_len, kv_len) sees, itself included, when at most `limit`.
int64_t mean_keys(int64_t q_len, int64_t kv_len, int64_t limit) {
  if (kv_len - q_len >= limit) return limit;
  const int64_t rising = std::min(limit, kv_len) - (kv_len - q_len);  // queries that see all keys so far
  const double sum =
      number(rising) * (number(kv_len - q_len) + (number(rising) + 1) / 2) + number(q_len - rising) * number(limit);
  return std::max<int64_t>(1, std::llround(sum / number(q_len)));
}

// Scores of every query against every cached indexer key (fp8, one key head), and the choice of the best.
void write_index_scores(Writer& writer, const SparseIndexer& indexer, int64_t key_ratio) {
  const StackTokens& tokens = writer.tokens();
  const auto scores = [&](int64_t sequences, int64_t q_len, int64_t kv_len) {
    const int64_t keys = std::max<int64_t>(1, mean_keys(q_len, kv_len, kv_len) / key_ratio);
    // One kernel adds up the heads' scores before it writes them. Prompts: as if the heads were one long one.
    GemmShape product{
        .m = q_len * indexer.heads, .n = keys, .k = indexer.head_dim, .batch = sequences, .scheme = Scheme::fp8};
    if (q_len > indexer.heads) {
      product.m = q_len;
      product.k = indexer.heads * indexer.head_dim;
    }
    writer.add("index_scores", attention_part, product);
    writer.add("index_top_k", attention_part,
               ElementwiseShape{.elements = sequences * q_len * keys, .inputs = 1, .outputs = 0, .dtype = DType::fp32});
  };
  if (tokens.prompts > 0) {
    for_prompt_pieces(tokens, true, false,
                      [&](int64_t q_len, int64_t kv_len) { scores(tokens.prompts, q_len, kv_len); });
  }
  if (tokens.decodes > 0) scores(tokens.decodes, 1, tokens.local_decode_keys());
}

void write_index_key(Writer& writer, const SparseIndexer& indexer, int64_t tokens) {
  writer.norm("indexer_norm", attention_part, tokens, indexer.head_dim, true);
  if (!writer.training()) {
    writer.add("indexer_kv_write", attention_part,
               KvWriteShape{.tokens = tokens,
                            .values_per_token = indexer.head_dim,
                            .dtype = writer.model().dtype,
                            .kv_dtype = writer.kv_dtype()});
  }
}

// One gate for each head, computed from the layer's input.
void write_head_gate(Writer& writer, int64_t heads) {
  writer.linear({.name = "head_gate_proj",
                 .m = writer.tokens().tokens(),
                 .n = heads,
                 .k = writer.model().hidden,
                 .scheme = plain_scheme(writer.model().dtype),
                 .from_stream = true,
                 .shares_input = true});
}

}  // namespace

void write_attention(Writer& writer, const Attention& a) {
  const Model& model = writer.model();
  const StackTokens& tokens = writer.tokens();
  const int64_t rows = tokens.tokens();
  const int64_t heads = a.heads / writer.rank().tensor, kv_heads = writer.rank().kv_heads(a.kv_heads);
  const int64_t value_dim = a.value_dim > 0 ? a.value_dim : a.head_dim;
  const int64_t query_width = heads * a.head_dim * (a.output_gate ? 2 : 1);
  const int64_t new_kv_heads = a.reuses_kv ? 0 : kv_heads;
  const int64_t kv_width = new_kv_heads * (a.head_dim + (a.keys_are_values ? 0 : value_dim));

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
  if (a.qk_norm && a.qk_norm_whole) {
    writer.norm("q_norm", attention_part, rows, heads * a.head_dim, false);
    writer.norm("k_norm", attention_part, rows, kv_heads * a.head_dim, false);
    // The norm is over the heads of all ranks, so the two sums of squares of each token are added up.
    if (writer.rank().tensor > 1) {
      writer.collective("qk_norm_all_reduce", CollectiveKind::all_reduce, ParallelAxis::tensor, writer.rank().tensor,
                        2.0 * static_cast<double>(rows) * sizeof(float));
    }
  } else if (a.qk_norm) {
    writer.norm("qk_norm", attention_part, rows * (heads + new_kv_heads), a.head_dim, false);
  }
  if (a.rotary_dim > 0) {
    writer.add(
        "rope", attention_part,
        RopeShape{
            .tokens = rows, .heads = heads, .kv_heads = kv_heads, .rotary_dim = a.rotary_dim, .dtype = model.dtype});
  }
  if (a.indexer) {
    SparseIndexer indexer = *a.indexer;
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

  // A sparse query reads its top_k keys: as much work as a window of that size.
  const int64_t window = a.indexer ? a.indexer->top_k : a.window;
  AttentionShape shape{.heads = heads,
                       .kv_heads = kv_heads,
                       .head_dim = a.head_dim,
                       .value_dim = a.value_dim,
                       .window = window,
                       .causal = a.causal,
                       .dtype = model.dtype,
                       .kv_dtype = writer.kv_dtype(),
                       .writes_kv = a.causal && !a.reuses_kv && !writer.training()};
  const double key_bytes = number(kv_heads * (a.head_dim + value_dim)) * writer.activation_bytes();
  const bool together = tokens.prompts > 0 && tokens.decodes > 0 && tokens.context_ranks == 1 && a.causal;
  if (together) writer.add("attention", attention_part, mixed_batch(shape, tokens));
  if (tokens.prompts > 0 && !together) {
    if (tokens.context_ranks > 1) {
      gather_over_context(writer, number(tokens.prompts) * number(tokens.prompt_keys()) * key_bytes);
    }
    shape.phase = a.causal ? AttentionPhase::prefill : AttentionPhase::encoder;
    shape.batch = tokens.prompts;
    for_prompt_pieces(tokens, a.causal, window > 0, [&](int64_t q_len, int64_t kv_len) {
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
    if (tokens.context_ranks > 1) {  // every rank's attention_part of each head, and its softmax sum
      gather_over_context(writer, number(tokens.context_ranks * tokens.decodes * heads) *
                                      (number(value_dim) * writer.activation_bytes() + 4));
    }
  }
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

// Prompts expand the latent into K and V per head (kv_b_proj); decodes, and all tokens of a sparse layer, multiply
// kv_b_proj into the query and the output instead (DeepSeek-V2, arXiv 2405.04434, section 2.1; vLLM keeps those factors
// in the activation type). The down projections and the cache are the same on every tensor rank.
void write_latent_attention(Writer& writer, const LatentAttention& a) {
  const Model& model = writer.model();
  const StackTokens& tokens = writer.tokens();
  const int64_t rows = tokens.tokens(), heads = a.heads / writer.rank().tensor;
  const int64_t query_dim = a.nope_dim + a.rope_dim, cache_dim = a.latent_dim + a.rope_dim;
  const bool low_rank_query = a.query_rank > 0;

  Linear from_hidden{
      .m = rows, .k = model.hidden, .scheme = model.mixer_scheme(), .adapted = Adapted::attention, .from_stream = true};
  const auto project = [&](std::string_view name, int64_t width, int64_t slices, bool shares_input) {
    from_hidden.name = name;
    from_hidden.n = width;
    from_hidden.slices = slices;
    from_hidden.shares_input = shares_input;
    writer.linear(from_hidden);
  };
  if (low_rank_query) {
    project("qkv_a_proj", a.query_rank + cache_dim, 2, false);
    writer.norm("q_a_norm", attention_part, rows, a.query_rank, false);
    writer.linear({.name = "q_b_proj",
                   .m = rows,
                   .n = heads * query_dim,
                   .k = a.query_rank,
                   .scheme = model.mixer_scheme(),
                   .adapted = Adapted::attention});
  } else {
    project("q_proj", heads * query_dim, 1, false);
    project("kv_a_proj", cache_dim, 1, true);
  }
  writer.norm("kv_a_norm", attention_part, rows, a.latent_dim, false);
  if (a.output_gate) project("output_gate_proj", heads * a.value_dim, 1, true);
  if (a.rope_dim > 0) {
    writer.add(
        "rope", attention_part,
        RopeShape{.tokens = rows, .heads = heads, .kv_heads = 1, .rotary_dim = a.rope_dim, .dtype = model.dtype});
  }
  if (!writer.training()) {
    writer.add("kv_write", attention_part,
               KvWriteShape{
                   .tokens = rows, .values_per_token = cache_dim, .dtype = model.dtype, .kv_dtype = writer.kv_dtype()});
  }
  if (a.indexer && !a.indexer->reused) {
    const SparseIndexer& indexer = *a.indexer;
    writer.linear({.name = "indexer_q_proj",
                   .m = rows,
                   .n = indexer.heads * indexer.head_dim,
                   .k = low_rank_query ? a.query_rank : model.hidden,
                   .scheme = model.mixer_scheme(),
                   .shares_input = true});
    project("indexer_k_proj", indexer.head_dim, 1, true);
    writer.linear({.name = "indexer_weights_proj",
                   .m = rows,
                   .n = indexer.heads,
                   .k = model.hidden,
                   .scheme = plain_scheme(model.dtype),
                   .from_stream = true,
                   .shares_input = true});
    write_index_key(writer, indexer, rows);
    write_index_scores(writer, indexer, 1);
  }

  LatentAttentionShape shape{.heads = heads,
                             .latent_dim = a.latent_dim,
                             .rope_dim = a.rope_dim,
                             .nope_dim = a.nope_dim,
                             .value_dim = a.value_dim,
                             .top_k = a.indexer ? a.indexer->top_k : 0,
                             .dtype = model.dtype,
                             .kv_dtype = writer.kv_dtype()};
  const bool absorb_prompts = a.indexer.has_value();
  const int64_t absorbed_rows = tokens.decodes + (absorb_prompts ? tokens.prompt_tokens() : 0);
  const auto absorb = [&](bool post) {
    if (absorbed_rows == 0) return;
    writer.add(post ? "kv_b_absorb_post" : "kv_b_absorb_pre", attention_part,
               LatentProjectionShape{.post = post,
                                     .tokens = absorbed_rows,
                                     .heads = heads,
                                     .latent_dim = a.latent_dim,
                                     .head_dim = post ? a.value_dim : a.nope_dim,
                                     .scheme = plain_scheme(model.dtype)},
               number(absorbed_rows * heads) * number(post ? a.latent_dim : a.nope_dim) * writer.activation_bytes());
  };

  absorb(false);
  if (tokens.prompts > 0) {
    const double keys = number(tokens.prompts) * number(tokens.prompt_keys());
    if (tokens.context_ranks > 1) gather_over_context(writer, keys * number(cache_dim) * writer.activation_bytes());
    if (!absorb_prompts) {  // cached history is expanded again
      writer.linear({.name = "kv_b_proj",
                     .m = tokens.prompts * tokens.prompt_keys(),
                     .n = heads * (a.nope_dim + a.value_dim),
                     .k = a.latent_dim,
                     .scheme = model.mixer_scheme()});
    }
    shape.phase = absorb_prompts ? AttentionPhase::decode : AttentionPhase::prefill;
    shape.batch = tokens.prompts;
    for_prompt_pieces(tokens, true, shape.top_k > 0, [&](int64_t q_len, int64_t kv_len) {
      shape.q_len = q_len;
      shape.kv_len = kv_len;
      const double queries = number(q_len * heads) * number(absorb_prompts ? cache_dim : query_dim);
      const double expanded =
          number(q_len) *
          (number(a.rope_dim) + number(absorb_prompts ? a.latent_dim : heads * (a.nope_dim + a.value_dim)));
      writer.add(
          "attention", attention_part, shape,
          number(tokens.prompts) * ((queries + expanded) * writer.activation_bytes() + 4 * number(q_len * heads)));
    });
  }
  if (tokens.decodes > 0) {
    shape.phase = AttentionPhase::decode;
    shape.batch = tokens.decodes;
    shape.q_len = 1;
    shape.kv_len = tokens.local_decode_keys();
    writer.add("attention", attention_part, shape);
    if (tokens.context_ranks > 1) {
      gather_over_context(writer, number(tokens.context_ranks * tokens.decodes * heads) *
                                      (number(a.latent_dim) * writer.activation_bytes() + 4));
    }
  }
  absorb(true);
  if (a.head_gate) write_head_gate(writer, heads);
  if (a.output_gate || a.head_gate) {
    writer.activation("output_gate", attention_part, rows, heads * a.value_dim, true);
  }
  writer.linear({.name = "o_proj",
                 .m = rows,
                 .n = model.hidden,
                 .k = heads * a.value_dim,
                 .scheme = model.mixer_scheme(),
                 .adapted = Adapted::attention});
}

// One vector per token is key and value of all heads. A query reads a window of them and, with ratio > 0, the
// compressed ones (all, or the indexer's choice), so the core is the absorbed latent form without a rotary
// part of its own.
void write_compressed_attention(Writer& writer, const CompressedAttention& a) {
  const Model& model = writer.model();
  const StackTokens& tokens = writer.tokens();
  const int64_t rows = tokens.tokens(), heads = a.heads / writer.rank().tensor;
  const int64_t groups = a.output_groups / writer.rank().tensor;
  const int64_t overlap = compressor_overlap(a.ratio);

  // Low-rank and full projections take adapters; the small ones that choose or pool keys do not.
  const auto project = [&](std::string_view name, int64_t width, int64_t inputs, bool shares_input, Adapted adapted,
                           bool plain = false) {
    writer.linear({.name = name,
                   .m = rows,
                   .n = width,
                   .k = inputs,
                   .scheme = plain ? plain_scheme(model.dtype) : model.mixer_scheme(),
                   .adapted = adapted,
                   .from_stream = inputs == model.hidden,
                   .shares_input = shares_input});
  };
  project("q_a_proj", a.query_rank, model.hidden, false, Adapted::attention);
  writer.norm("q_a_norm", attention_part, rows, a.query_rank, false);
  project("q_b_proj", heads * a.head_dim, a.query_rank, false, Adapted::attention);
  project("kv_proj", a.head_dim, model.hidden, true, Adapted::attention);
  writer.norm("kv_norm", attention_part, rows, a.head_dim, false);
  writer.add("rope", attention_part,
             RopeShape{.tokens = rows, .heads = heads, .kv_heads = 1, .rotary_dim = a.rope_dim, .dtype = model.dtype});

  const auto cache = [&](std::string_view name, int64_t new_keys, int64_t width) {
    if (writer.training()) return;
    writer.add(name, attention_part,
               KvWriteShape{
                   .tokens = new_keys, .values_per_token = width, .dtype = model.dtype, .kv_dtype = writer.kv_dtype()});
  };
  cache("kv_write", rows, a.head_dim);
  if (a.ratio > 0) {
    const int64_t compressed_rows = ceil_divide(rows, a.ratio);
    project("compressor_kv", overlap * a.head_dim, model.hidden, true, Adapted::no, true);
    project("compressor_gate", overlap * a.head_dim, model.hidden, true, Adapted::no, true);
    writer.add("compress", attention_part,
               ElementwiseShape{.elements = rows * overlap * a.head_dim,
                                .inputs = 2,
                                .outputs = 0,
                                .flops_per_element = 8,
                                .dtype = DType::fp32});
    cache("compressed_kv_write", compressed_rows, a.head_dim);
    if (a.indexer) {
      const SparseIndexer& indexer = *a.indexer;
      project("indexer_q_proj", indexer.heads * indexer.head_dim, a.query_rank, true, Adapted::no);
      project("indexer_weights_proj", indexer.heads, model.hidden, true, Adapted::no, true);
      project("indexer_compressor_kv", overlap * indexer.head_dim, model.hidden, true, Adapted::no, true);
      project("indexer_compressor_gate", overlap * indexer.head_dim, model.hidden, true, Adapted::no, true);
      cache("indexer_kv_write", compressed_rows, indexer.head_dim);
      write_index_scores(writer, indexer, a.ratio);
    }
  }

  const auto keys_read = [&](int64_t q_len, int64_t kv_len) {
    int64_t keys = a.window > 0 ? mean_keys(q_len, kv_len, a.window) : 0;
    if (a.ratio > 0) {
      const int64_t limit = a.indexer ? a.indexer->top_k * a.ratio : kv_len;
      keys += mean_keys(q_len, kv_len, std::min(limit, kv_len)) / a.ratio;
    }
    return std::max<int64_t>(1, keys);
  };
  LatentAttentionShape shape{.phase = AttentionPhase::decode,
                             .heads = heads,
                             .latent_dim = a.head_dim,
                             .rope_dim = 0,
                             .nope_dim = a.head_dim,
                             .value_dim = a.head_dim,
                             .dtype = model.dtype,
                             .kv_dtype = writer.kv_dtype()};
  if (tokens.prompts > 0) {
    if (tokens.context_ranks > 1) {
      gather_over_context(writer, number(tokens.prompts) * number(tokens.prompt_keys()) * number(a.head_dim) *
                                      writer.activation_bytes());
    }
    shape.batch = tokens.prompts;
    for_prompt_pieces(tokens, true, true, [&](int64_t q_len, int64_t kv_len) {
      shape.q_len = q_len;
      shape.kv_len = kv_len;
      shape.top_k = keys_read(q_len, kv_len);
      const double saved = number(q_len) * number((heads + 1) * a.head_dim) * writer.activation_bytes();
      writer.add("attention", attention_part, shape, number(tokens.prompts) * (saved + 4 * number(q_len * heads)));
    });
  }
  if (tokens.decodes > 0) {
    shape.batch = tokens.decodes;
    shape.q_len = 1;
    shape.kv_len = ceil_divide(keys_read(1, tokens.decode_keys()), tokens.context_ranks);
    shape.top_k = 0;
    writer.add("attention", attention_part, shape);
    if (tokens.context_ranks > 1) {
      gather_over_context(writer, number(tokens.context_ranks * tokens.decodes * heads) *
                                      (number(a.head_dim) * writer.activation_bytes() + 4));
    }
  }
  // Each group of heads has a low-rank output of its own; one more projection joins them.
  writer.add("o_a_proj", attention_part,
             GemmShape{.m = rows,
                       .n = a.output_rank,
                       .k = heads * a.head_dim / groups,
                       .batch = groups,
                       .scheme = model.mixer_scheme()},
             number(rows) * number(heads * a.head_dim) * writer.activation_bytes());
  project("o_b_proj", model.hidden, groups * a.output_rank, false, Adapted::attention);
}

}  // namespace foretoken::step
