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
  // One kernel adds up the heads' scores, so that one fp32 of each query and key leaves the chip (DeepGEMM's
  // fp8_mqa_logits and fp8_paged_mqa_logits).
  const StackTokens& tokens = writer.tokens();
  const auto keys_of = [&](int64_t q_len, int64_t kv_len) {
    return std::max<int64_t>(1, mean_keys(q_len, kv_len, kv_len) / key_ratio);
  };
  const auto top_k = [&](int64_t queries, int64_t keys) {
    writer.add("index_top_k", attention_part,
               ElementwiseShape{.elements = queries * keys, .inputs = 1, .outputs = 0, .dtype = DType::fp32});
  };
  if (tokens.prompts > 0) {
    for_prompt_pieces(tokens, true, false, [&](int64_t q_len, int64_t kv_len) {
      const int64_t keys = keys_of(q_len, kv_len);
      const bool is_long = q_len > indexer.heads;  // as if the heads were one long one
      writer.add("index_scores", attention_part,
                 GemmShape{.m = is_long ? q_len : q_len * indexer.heads,
                           .n = keys,
                           .k = is_long ? indexer.heads * indexer.head_dim : indexer.head_dim,
                           .batch = tokens.prompts,
                           .scheme = Scheme::fp8});
      top_k(tokens.prompts * q_len, keys);
    });
  }
  if (tokens.decodes == 0) return;
  const int64_t keys = keys_of(1, tokens.local_decode_keys());
  // Attention whose keys and values together are as wide as an index key reads and multiplies as much for all heads.
  writer.add("index_scores", attention_part,
             AttentionShape{.phase = AttentionPhase::decode,
                            .batch = tokens.decodes,
                            .heads = indexer.heads,
                            .kv_heads = 1,
                            .head_dim = std::max<int64_t>(1, indexer.head_dim / 2),
                            .kv_len = keys,
                            .dtype = writer.model().dtype,
                            .kv_dtype = DType::fp8,
                            .math = DType::fp8});
  top_k(tokens.decodes, keys);
}

void write_index_key(Writer& writer, const SparseIndexer& indexer, int64_t tokens) {
  writer.norm("indexer_norm", attention_part, tokens, indexer.head_dim, true);
  if (!writer.training()) {
    writer.add("indexer_kv_write", attention_part,
               KvWriteShape{.tokens = tokens,
                            .values_per_token = indexer.head_dim,
                            .dtype = writer.model().dtype,
                            .kv_dtype = DType::fp8});
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
