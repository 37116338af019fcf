// Multi-head latent attention (MLA) with its projections.
#include "model/step_attention_parts.h"
#include "model/step_internal.h"

namespace foretoken::step {
namespace {

class LatentLayer {
 public:
  LatentLayer(Writer& to, const LatentAttention& attention)
      : writer_(to),
        a_(attention),
        rows_(writer_.tokens().tokens()),
        heads_(a_.heads / writer_.rank().tensor),
        query_dim_(a_.nope_dim + a_.rope_dim),
        cache_dim_(a_.latent_dim + a_.rope_dim) {}

  void write() const {
    write_inputs();
    if (a_.indexer && !a_.indexer->reused) write_indexer(*a_.indexer);
    LatentAttentionShape shape{.heads = heads_,
                               .latent_dim = a_.latent_dim,
                               .rope_dim = a_.rope_dim,
                               .nope_dim = a_.nope_dim,
                               .value_dim = a_.value_dim,
                               .top_k = a_.indexer ? a_.indexer->top_k : 0,
                               .dtype = writer_.model().dtype,
                               .kv_dtype = writer_.kv_dtype()};
    absorb(false);
    if (writer_.tokens().prompts > 0) write_prompts(shape);
    if (writer_.tokens().decodes > 0) write_decodes(shape);
    absorb(true);
    write_output();
  }

 private:
  void project(std::string_view name, int64_t width, int64_t slices, bool shares_input) const {
    writer_.linear({.name = name,
                    .m = rows_,
                    .n = width,
                    .k = writer_.model().hidden,
                    .scheme = writer_.model().mixer_scheme(),
                    .adapted = Adapted::attention,
                    .slices = slices,
                    .from_stream = true,
                    .shares_input = shares_input});
  }

  void write_inputs() const {
    const Model& model = writer_.model();
    if (a_.query_rank > 0) {
      project("qkv_a_proj", a_.query_rank + cache_dim_, 2, false);
      writer_.norm("q_a_norm", attention_part, rows_, a_.query_rank, false);
      writer_.linear({.name = "q_b_proj",
                      .m = rows_,
                      .n = heads_ * query_dim_,
                      .k = a_.query_rank,
                      .scheme = model.mixer_scheme(),
                      .adapted = Adapted::attention});
    } else {
      project("q_proj", heads_ * query_dim_, 1, false);
      project("kv_a_proj", cache_dim_, 1, true);
    }
    writer_.norm("kv_a_norm", attention_part, rows_, a_.latent_dim, false);
    if (a_.output_gate) project("output_gate_proj", heads_ * a_.value_dim, 1, true);
    if (a_.rope_dim > 0) {
      writer_.add(
          "rope", attention_part,
          RopeShape{.tokens = rows_, .heads = heads_, .kv_heads = 1, .rotary_dim = a_.rope_dim, .dtype = model.dtype});
    }
    if (!writer_.training()) {
      writer_.add(
          "kv_write", attention_part,
          KvWriteShape{
              .tokens = rows_, .values_per_token = cache_dim_, .dtype = model.dtype, .kv_dtype = writer_.kv_dtype()});
    }
  }

  void write_indexer(const SparseIndexer& indexer) const {
    const Model& model = writer_.model();
    writer_.linear({.name = "indexer_q_proj",
                    .m = rows_,
                    .n = indexer.heads * indexer.head_dim,
                    .k = a_.query_rank > 0 ? a_.query_rank : model.hidden,
                    .scheme = model.mixer_scheme(),
                    .shares_input = true});
    project("indexer_k_proj", indexer.head_dim, 1, true);
    writer_.linear({.name = "indexer_weights_proj",
                    .m = rows_,
                    .n = indexer.heads,
                    .k = model.hidden,
                    .scheme = plain_scheme(model.dtype),
                    .from_stream = true,
                    .shares_input = true});
    write_index_key(writer_, indexer, rows_);
    write_index_scores(writer_, indexer, 1);
  }

  bool absorbs_prompts() const { return a_.indexer.has_value(); }

  // kv_b_proj multiplied into the query (before the scores) or into the output (`post`).
  void absorb(bool post) const {
    const StackTokens& tokens = writer_.tokens();
    const int64_t absorbed = tokens.decodes + (absorbs_prompts() ? tokens.prompt_tokens() : 0);
    if (absorbed == 0) return;
    writer_.add(post ? "kv_b_absorb_post" : "kv_b_absorb_pre", attention_part,
                LatentProjectionShape{.post = post,
                                      .tokens = absorbed,
                                      .heads = heads_,
                                      .latent_dim = a_.latent_dim,
                                      .head_dim = post ? a_.value_dim : a_.nope_dim,
                                      .scheme = plain_scheme(writer_.model().dtype)},
                number(absorbed * heads_) * number(post ? a_.latent_dim : a_.nope_dim) * writer_.activation_bytes());
  }

  void write_prompts(LatentAttentionShape shape) const {
    const StackTokens& tokens = writer_.tokens();
    const double keys = number(tokens.prompts) * number(tokens.prompt_keys());
    if (tokens.context_ranks > 1) gather_over_context(writer_, keys * number(cache_dim_) * writer_.activation_bytes());
    if (!absorbs_prompts()) {  // cached history is expanded again
      writer_.linear({.name = "kv_b_proj",
                      .m = tokens.prompts * tokens.prompt_keys(),
                      .n = heads_ * (a_.nope_dim + a_.value_dim),
                      .k = a_.latent_dim,
                      .scheme = writer_.model().mixer_scheme()});
    }
    shape.phase = absorbs_prompts() ? AttentionPhase::decode : AttentionPhase::prefill;
    shape.batch = tokens.prompts;
    for_prompt_pieces(tokens, true, shape.top_k > 0, [&](int64_t q_len, int64_t kv_len) {
      shape.q_len = q_len;
      shape.kv_len = kv_len;
      const double queries = number(q_len * heads_) * number(absorbs_prompts() ? cache_dim_ : query_dim_);
      const double expanded =
          number(q_len) *
          (number(a_.rope_dim) + number(absorbs_prompts() ? a_.latent_dim : heads_ * (a_.nope_dim + a_.value_dim)));
      writer_.add(
          "attention", attention_part, shape,
          number(tokens.prompts) * ((queries + expanded) * writer_.activation_bytes() + 4 * number(q_len * heads_)));
    });
  }

  void write_decodes(LatentAttentionShape shape) const {
    const StackTokens& tokens = writer_.tokens();
    shape.phase = AttentionPhase::decode;
    shape.batch = tokens.decodes;
    shape.q_len = 1;
    shape.kv_len = tokens.local_decode_keys();
    writer_.add("attention", attention_part, shape);
    if (tokens.context_ranks > 1) {
      gather_over_context(writer_, number(tokens.context_ranks * tokens.decodes * heads_) *
                                       (number(a_.latent_dim) * writer_.activation_bytes() + 4));
    }
  }

  void write_output() const {
    if (a_.head_gate) write_head_gate(writer_, heads_);
    if (a_.output_gate || a_.head_gate) {
      writer_.activation("output_gate", attention_part, rows_, heads_ * a_.value_dim, true);
    }
    writer_.linear({.name = "o_proj",
                    .m = rows_,
                    .n = writer_.model().hidden,
                    .k = heads_ * a_.value_dim,
                    .scheme = writer_.model().mixer_scheme(),
                    .adapted = Adapted::attention});
  }

  Writer& writer_;
  const LatentAttention& a_;
  int64_t rows_;
  int64_t heads_;      // of this rank
  int64_t query_dim_;  // of one head
  int64_t cache_dim_;  // of one token
};

}  // namespace

// Prompts expand the latent into K and V per head (kv_b_proj); decodes, and all tokens of a sparse layer, multiply
// kv_b_proj into the query and the output instead (DeepSeek-V2, arXiv 2405.04434, section 2.1; vLLM keeps those factors
// in the activation type). The down projections and the cache are the same on every tensor rank.
void write_latent_attention(Writer& writer, const LatentAttention& attention) {
  LatentLayer(writer, attention).write();
}

}  // namespace foretoken::step
