// Pieces that dense, latent and compressed attention share.
#pragma once

#include <cstdint>

#include "model/step_internal.h"

namespace foretoken::step {

inline constexpr StepPart attention_part = StepPart::attention;

void gather_over_context(Writer& writer, double bytes);

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

// Mean number of earlier keys a query of [kv_len - q_len, kv_len) sees, itself included, when at most `limit`.
int64_t mean_keys(int64_t q_len, int64_t kv_len, int64_t limit);

// Scores of every query against every cached indexer key (fp8, one key head), and the choice of the best.
void write_index_scores(Writer& writer, const SparseIndexer& indexer, int64_t key_ratio);

void write_index_key(Writer& writer, const SparseIndexer& indexer, int64_t tokens);

// One gate for each head, computed from the layer's input.
void write_head_gate(Writer& writer, int64_t heads);

}  // namespace foretoken::step
