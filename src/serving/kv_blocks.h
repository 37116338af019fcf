// The paged KV cache of one replica: blocks with reference counts, found again by content, reused oldest first.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "serving/sequence.h"

namespace foretoken {

// As in vLLM (v1/core/block_pool.py, v0.19): free blocks form a queue; new blocks come from its front and lose their
// content there; those given back go to its end, the last of a sequence first, and can be found until they are reused.
// A block that several sequences hold is counted once. free() + used() = total, always.
class KvBlocks {
 public:
  KvBlocks(int64_t blocks, int64_t block_size, bool prefix_caching);

  int64_t free() const { return free_; }
  int64_t used() const { return used_; }
  int64_t blocks_for(int64_t tokens) const { return (tokens + block_size_ - 1) / block_size_; }
  // Blocks that `sequence` lacks to hold so many tokens.
  int64_t missing(const Sequence& sequence, int64_t tokens) const;

  // To be called once for a new sequence: works out the content of its blocks.
  void describe(Sequence& sequence) const;

  // Full blocks from its start that are in the cache; `free` of them nobody holds: taking those uses up free blocks.
  struct Prefix {
    int64_t blocks = 0;
    int64_t free = 0;
  };
  Prefix find_prefix(const Sequence& sequence, int64_t most_tokens) const;
  void take_prefix(Sequence& sequence, const Prefix& prefix);

  // Lets the sequence hold `tokens`; false, and nothing happens, when too few blocks are free.
  bool cover(Sequence& sequence, int64_t tokens);
  // Its full blocks up to `computed` can be found from now on.
  void publish(Sequence& sequence);
  void give_back(Sequence& sequence);

 private:
  struct Block {
    uint64_t content = 0;  // 0 = none
    int32_t previous = none, next = none;
    int32_t holders = 0;
    int32_t next_copy = none;  // of the same content, younger
    bool shared = false;       // listed in by_content_
  };
  static constexpr int32_t none = -1;

  uint64_t content_of(const Sequence& sequence, int64_t index) const;
  int32_t find(const Sequence& sequence, int64_t index) const;
  void append_free(int32_t block);
  void remove_free(int32_t block);
  int32_t take_oldest();
  void forget(int32_t block);
  void check() const;

  int64_t block_size_;
  bool prefix_caching_;
  int64_t free_ = 0, used_ = 0;
  int32_t first_free_ = none, last_free_ = none;
  std::vector<Block> blocks_;
  std::unordered_map<uint64_t, int32_t> by_content_;  // the oldest copy; never iterated
};

}  // namespace foretoken
