// The paged KV cache of one replica: blocks with reference counts, found again by content, reused oldest first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "base/hashed_index.h"
#include "compose/cache_layout.h"
#include "serving/scheduling/sequence.h"

namespace foretoken {

class ReplicaTiers;

// As in vLLM (v1/core/block_pool.py, v0.19): free blocks form a queue; new blocks come from its front and lose their
// content there; those given back go to its end, the last of a sequence first, and can be found until they are reused.
// A block that several sequences hold is counted once. free() + used() = total, always.
//
// Blocks are only told apart where it matters: those whose content other requests may have are kept one by one, the
// rest of a sequence as one run. So a request that shares nothing costs the same whatever its length.
//
// Blocks of one token are pages of a radix tree (SGLang): those that one number of a trace describes are found, kept
// and lost together, as a node of the tree is.
//
// Where kinds of layers share the blocks, requests share those of the layers that keep every token: one block of each
// such group for each block_size tokens. Each sequence has its windows to itself, and finds those of a prefix whenever
// it finds the rest. Beside recurrent states nothing is found (vLLM's default for such models).
//
// With tiers below (tiers/replica_tiers.h) a prefix goes on with what they hold, which is loaded into new blocks.
class KvBlocks {
 public:
  // `groups` as in SchedulerOptions::cache_groups; `tiers` are not owned.
  KvBlocks(int64_t blocks, int64_t block_size, bool prefix_caching, std::vector<CacheGroup> groups = {},
           ReplicaTiers* tiers = nullptr);

  int64_t free() const { return free_; }
  int64_t used() const { return used_; }
  // Blocks of a sequence of so many tokens, between steps.
  int64_t blocks_for(int64_t tokens) const {
    return groups_.empty() ? blocks_of_size(tokens) : blocks_of_groups(tokens);
  }
  // The longest sequence that so many blocks hold.
  int64_t tokens_in(int64_t blocks) const;
  // Blocks that `sequence` lacks to hold so many tokens.
  int64_t missing(const Sequence& sequence, int64_t tokens) const {
    return is_within_blocks(sequence, tokens) ? 0 : std::max<int64_t>(0, blocks_for(tokens) - sequence.blocks);
  }
  // The most that a sequence lacks to hold `tokens` beyond those it holds, whatever these are.
  int64_t most_missing(int64_t tokens) const;

  // To be called once for a new sequence: works out the content of its blocks.
  void describe(Sequence& sequence) const;
  // It begins to wait: what lies deep in the tiers may be brought nearer.
  void prefetch(const Sequence& sequence) const;

  // What is in the cache from its start, in full blocks; `free` of them nobody holds: taking those uses up free
  // blocks. The last `loaded` tokens come from the tiers and are in none of the blocks.
  struct Prefix {
    int64_t tokens = 0;
    int64_t blocks = 0;
    int64_t free = 0;
    int64_t loaded = 0;
    bool swapped = false;  // these were left by the sequence itself when it was preempted

    int64_t tokens_here() const { return tokens - loaded; }
  };
  Prefix find_prefix(const Sequence& sequence, int64_t most_tokens) const;
  void take_prefix(Sequence& sequence, const Prefix& prefix);

  // Lets the sequence hold `tokens`; false, and nothing happens, when too few blocks are free.
  bool cover(Sequence& sequence, int64_t tokens) {
    return is_within_blocks(sequence, tokens) || cover_more(sequence, tokens);
  }
  // Its full blocks up to `computed` can be found from now on.
  void publish(Sequence& sequence) {
    if (sequence.computed >= sequence.next_content_end) publish_more(sequence);
  }
  void give_back(Sequence& sequence);
  // The same of a sequence that is preempted, whose tokens a tier may keep.
  void give_up(Sequence& sequence);

 private:
  static constexpr int32_t none = -1;
  // A block, of each group that keeps every token, that others may have in common.
  struct Content {
    uint64_t hash = 0;
    uint64_t place = 0;  // its number in the queue, while nobody holds it
    int32_t holders = 0;
    int32_t next_copy = none;  // of the same content, younger
  };
  // Free blocks in the queue that were given back together; the last of their sequence is reused first.
  struct FreeRun {
    uint64_t number = 0;
    int64_t blocks = 0;
    int32_t content = none;  // of all of them
  };

  // Asked for every sequence of every step: mostly its last block has room.
  bool is_within_blocks(const Sequence& sequence, int64_t tokens) const {
    return groups_.empty() && tokens <= sequence.blocks * block_size_;
  }
  // Usually sizes are powers of two, and this is asked for every token: no division.
  int64_t blocks_of_size(int64_t tokens) const {
    const int64_t up = tokens + block_size_ - 1;
    return block_bits_ >= 0 ? up >> block_bits_ : up / block_size_;
  }
  int64_t blocks_of_groups(int64_t tokens) const;
  bool cover_more(Sequence& sequence, int64_t tokens);
  int64_t content_tokens(const Sequence& sequence) const { return sequence.content_rows * block_size_; }
  int64_t content_blocks(const Sequence& sequence) const { return sequence.content_rows * row_blocks_; }
  Prefix find_here(const Sequence& sequence, int64_t most_tokens) const;
  void find_below(const Sequence& sequence, int64_t most_tokens, Prefix& prefix) const;
  void load(const Sequence& sequence, const Prefix& prefix);
  void publish_more(Sequence& sequence);
  // After its contents have changed.
  void set_next_content(Sequence& sequence) const;
  // What is looked for next lies anywhere in memory: the processor fetches it together.
  void bring_near(std::span<const uint64_t> hashes) const;
  void bring_near_oldest() const;
  void append_free(int64_t blocks, int32_t content);
  FreeRun* find_run(uint64_t number);
  const FreeRun* find_run(uint64_t number) const;
  void reuse_oldest(int64_t blocks);
  void forget(int32_t content, int64_t tokens);
  void check() const;

  int64_t block_size_, total_;
  int block_bits_;                  // block_size_ is 2 to the power of it; -1 = of none
  std::vector<CacheGroup> groups_;  // empty = every token stays
  int64_t row_blocks_;              // of one content; 0 = nothing can be shared
  bool prefix_caching_;
  ReplicaTiers* tiers_;
  int64_t free_ = 0, used_ = 0;
  uint64_t next_number_ = 1;
  std::deque<FreeRun> queue_;  // by number; runs of 0 blocks were taken out of the middle
  std::vector<Content> contents_;
  std::vector<int32_t> spare_contents_;
  HashedIndex by_hash_;  // the oldest copy
};

}  // namespace foretoken
