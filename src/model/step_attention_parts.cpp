#include "model/step_attention_parts.h"

#include <algorithm>
#include <cmath>

namespace foretoken::step {

void gather_over_context(Writer& writer, double bytes) {
  writer.collective("cp_all_gather", CollectiveKind::all_gather, ParallelAxis::context, writer.rank().context, bytes);
}

int64_t mean_keys(int64_t q_len, int64_t kv_len, int64_t limit) {
  if (kv_len - q_len >= limit) return limit;
  const int64_t rising = std::min(limit, kv_len) - (kv_len - q_len);  // queries that see all keys so far
  const double sum =
      number(rising) * (number(kv_len - q_len) + (number(rising) + 1) / 2) + number(q_len - rising) * number(limit);
  return std::max<int64_t>(1, std::llround(sum / number(q_len)));
}

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

void write_head_gate(Writer& writer, int64_t heads) {
  writer.linear({.name = "head_gate_proj",
                 .m = writer.tokens().tokens(),
                 .n = heads,
                 .k = writer.model().hidden,
                 .scheme = plain_scheme(writer.model().dtype),
                 .from_stream = true,
                 .shares_input = true});
}

}  // namespace foretoken::step
