// Compressed attention (DeepSeek-V4) with its projections.
#include <algorithm>

#include "model/step_attention_parts.h"
#include "model/step_internal.h"

namespace foretoken::step {
namespace {

class CompressedLayer {
 public:
  CompressedLayer(Writer& to, const CompressedAttention& attention)
      : writer_(to), a_(attention), rows_(writer_.tokens().tokens()), heads_(a_.heads / writer_.rank().tensor) {}

  void write() const {
    write_inputs();
    if (a_.ratio > 0) write_compressor();
    // Sparse kernels widen an fp8 cache and multiply in 16 bits (FlashMLA), so they are priced as with a 16-bit one.
    const LatentAttentionShape shape{.phase = AttentionPhase::decode,
                                     .heads = heads_,
                                     .latent_dim = a_.head_dim,
                                     .rope_dim = 0,
                                     .nope_dim = a_.head_dim,
                                     .value_dim = a_.head_dim,
                                     .dtype = writer_.model().dtype,
                                     .kv_dtype = writer_.model().dtype};
    if (writer_.tokens().prompts > 0) write_prompts(shape);
    if (writer_.tokens().decodes > 0) write_decodes(shape);
    write_output();
  }

 private:
  // Low-rank and full projections take adapters; the small ones that choose or pool keys do not.
  void project(std::string_view name, int64_t width, int64_t inputs, bool shares_input, Adapted adapted,
               bool plain = false) const {
    const Model& model = writer_.model();
    writer_.linear({.name = name,
                    .m = rows_,
                    .n = width,
                    .k = inputs,
                    .scheme = plain ? plain_scheme(model.dtype) : model.mixer_scheme(),
                    .adapted = adapted,
                    .from_stream = inputs == model.hidden,
                    .shares_input = shares_input});
  }

  void cache(std::string_view name, int64_t new_keys, int64_t width) const {
    if (writer_.training()) return;
    writer_.add(name, attention_part,
                KvWriteShape{.tokens = new_keys,
                             .values_per_token = width,
                             .dtype = writer_.model().dtype,
                             .kv_dtype = writer_.kv_dtype()});
  }

  void write_inputs() const {
    const Model& model = writer_.model();
    project("q_a_proj", a_.query_rank, model.hidden, false, Adapted::attention);
    writer_.norm("q_a_norm", attention_part, rows_, a_.query_rank, false);
    project("q_b_proj", heads_ * a_.head_dim, a_.query_rank, false, Adapted::attention);
    project("kv_proj", a_.head_dim, model.hidden, true, Adapted::attention);
    writer_.norm("kv_norm", attention_part, rows_, a_.head_dim, false);
    writer_.add(
        "rope", attention_part,
        RopeShape{.tokens = rows_, .heads = heads_, .kv_heads = 1, .rotary_dim = a_.rope_dim, .dtype = model.dtype});
    cache("kv_write", rows_, a_.head_dim);
  }

  void write_compressor() const {
    const int64_t hidden = writer_.model().hidden, overlap = compressor_overlap(a_.ratio);
    const int64_t compressed_rows = ceil_divide(rows_, a_.ratio);
    project("compressor_kv", overlap * a_.head_dim, hidden, true, Adapted::no, true);
    project("compressor_gate", overlap * a_.head_dim, hidden, true, Adapted::no, true);
    writer_.add("compress", attention_part,
                ElementwiseShape{.elements = rows_ * overlap * a_.head_dim,
                                 .inputs = 2,
                                 .outputs = 0,
                                 .flops_per_element = 8,
                                 .dtype = DType::fp32});
    cache("compressed_kv_write", compressed_rows, a_.head_dim);
    if (!a_.indexer) return;
    const SparseIndexer& indexer = *a_.indexer;
    project("indexer_q_proj", indexer.heads * indexer.head_dim, a_.query_rank, true, Adapted::no);
    project("indexer_weights_proj", indexer.heads, hidden, true, Adapted::no, true);
    project("indexer_compressor_kv", overlap * indexer.head_dim, hidden, true, Adapted::no, true);
    project("indexer_compressor_gate", overlap * indexer.head_dim, hidden, true, Adapted::no, true);
    cache("indexer_kv_write", compressed_rows, indexer.head_dim);
    write_index_scores(writer_, indexer, a_.ratio);
  }

  int64_t keys_read(int64_t q_len, int64_t kv_len) const {
    int64_t keys = a_.window > 0 ? mean_keys(q_len, kv_len, a_.window) : 0;
    if (a_.ratio > 0) {
      const int64_t limit = a_.indexer ? a_.indexer->top_k * a_.ratio : kv_len;
      keys += mean_keys(q_len, kv_len, std::min(limit, kv_len)) / a_.ratio;
    }
    return std::max<int64_t>(1, keys);
  }

  void write_prompts(LatentAttentionShape shape) const {
    const StackTokens& tokens = writer_.tokens();
    if (tokens.context_ranks > 1) {
      gather_over_context(writer_, number(tokens.prompts) * number(tokens.prompt_keys()) * number(a_.head_dim) *
                                       writer_.activation_bytes());
    }
    shape.batch = tokens.prompts;
    for_prompt_pieces(tokens, true, true, [&](int64_t q_len, int64_t kv_len) {
      shape.q_len = q_len;
      shape.kv_len = kv_len;
      shape.top_k = keys_read(q_len, kv_len);
      const double saved = number(q_len) * number((heads_ + 1) * a_.head_dim) * writer_.activation_bytes();
      writer_.add("attention", attention_part, shape, number(tokens.prompts) * (saved + 4 * number(q_len * heads_)));
    });
  }

  void write_decodes(LatentAttentionShape shape) const {
    const StackTokens& tokens = writer_.tokens();
    shape.batch = tokens.decodes;
    shape.q_len = 1;
    shape.kv_len = ceil_divide(keys_read(1, tokens.decode_keys()), tokens.context_ranks);
    writer_.add("attention", attention_part, shape);
    if (tokens.context_ranks > 1) {
      gather_over_context(writer_, number(tokens.context_ranks * tokens.decodes * heads_) *
                                       (number(a_.head_dim) * writer_.activation_bytes() + 4));
    }
  }

  // Each group of heads has a low-rank output of its own; one more projection joins them.
  void write_output() const {
    const int64_t groups = a_.output_groups / writer_.rank().tensor;
    writer_.add("o_a_proj", attention_part,
                GemmShape{.m = rows_,
                          .n = a_.output_rank,
                          .k = heads_ * a_.head_dim / groups,
                          .batch = groups,
                          .scheme = writer_.model().mixer_scheme()},
                number(rows_) * number(heads_ * a_.head_dim) * writer_.activation_bytes());
    project("o_b_proj", writer_.model().hidden, groups * a_.output_rank, false, Adapted::attention);
  }

  Writer& writer_;
  const CompressedAttention& a_;
  int64_t rows_;
  int64_t heads_;  // of this rank
};

}  // namespace

// One vector per token is key and value of all heads. A query reads a window of them and, with ratio > 0, the
// compressed ones (all, or the indexer's choice), so the core is the absorbed latent form without a rotary
// part of its own.
void write_compressed_attention(Writer& writer, const CompressedAttention& attention) {
  CompressedLayer(writer, attention).write();
}

}  // namespace foretoken::step
