// How an engine cuts the KV cache of one rank into blocks, by kind of layer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "compose/serving_engine.h"
#include "model/step.h"

namespace foretoken {

// Layers whose cache is handed out together: one block of the group holds `block_tokens` tokens of each of its layers,
// or one sequence's recurrent state.
struct CacheGroup {
  std::string kind;          // "full attention", "window of 1024", "recurrent state"
  int64_t layers = 0;        // that really use a block; blocks may have room for more
  int64_t block_tokens = 0;  // 0 = state, one block per sequence
  int64_t window = 0;        // 0 = every token stays
  Bytes block_bytes;
};

struct CacheLayout {
  std::vector<CacheGroup> groups;
  Bytes block_bytes;         // one block of the shared pool; else one block of every group that grows
  int64_t block_tokens = 0;  // of the first group that grows; 0 when only states are kept
  bool shared_pool = true;   // any group may take any block

  bool grows_evenly() const { return groups.size() == 1 && groups.front().window == 0 && block_tokens > 0; }
};

// vLLM (v1/core/kv_cache_utils.py): all pages get one size. Kinds of layers are split into groups of as many layers as
// the rarest kind has (of the commonest, where that is less than a quarter more), padded, and share one pool. Where a
// model has recurrent states, attention blocks are lengthened until a page holds a layer's state.
// SGLang and TensorRT-LLM: one pool per kind of layer.
CacheLayout cache_layout(const Model& model, const EngineFlags& resolved_flags, const ParallelPlan& plan,
                         int64_t stage);

// Blocks that a sequence of `tokens` holds at most in a group, when a step may bring in `step_tokens` of them at once:
// a window is freed only after the step that moved past it.
int64_t sequence_blocks(const CacheGroup& group, int64_t tokens, int64_t step_tokens);

// The same in bytes, over all groups.
Bytes sequence_bytes(const CacheLayout& layout, int64_t tokens, int64_t step_tokens);

}  // namespace foretoken
