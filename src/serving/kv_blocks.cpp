#include "serving/kv_blocks.h"

#include <algorithm>

#include "base/error.h"
#include "base/random.h"

namespace foretoken {
namespace {

uint64_t mixed(uint64_t a, uint64_t b) {
  uint64_t state = a ^ (b * 0x9e3779b97f4a7c15U);
  return splitmix64(state) | 1U;  // never 0
}

}  // namespace

KvBlocks::KvBlocks(int64_t blocks, int64_t block_size, bool prefix_caching)
    : block_size_(block_size), prefix_caching_(prefix_caching), blocks_(static_cast<size_t>(blocks)) {
  for (int32_t i = 0; i < static_cast<int32_t>(blocks); ++i) append_free(i);
  check();
}

int64_t KvBlocks::missing(const Sequence& sequence, int64_t tokens) const {
  return std::max<int64_t>(0, blocks_for(tokens) - static_cast<int64_t>(sequence.blocks.size()));
}

void KvBlocks::describe(Sequence& sequence) const {
  const Request& request = sequence.request;
  if (!prefix_caching_ || request.prefix_blocks.empty()) return;
  const int64_t described = static_cast<int64_t>(request.prefix_blocks.size()) * request.prefix_block_tokens;
  uint64_t chain = 1;
  size_t next_number = 0;
  // A block's content is everything up to its end, so a number that reaches beyond the block belongs to it.
  for (int64_t end = block_size_; end <= described && end <= sequence.final_tokens(); end += block_size_) {
    while (static_cast<int64_t>(next_number) * request.prefix_block_tokens < end) {
      chain = mixed(chain, static_cast<uint64_t>(request.prefix_blocks[next_number++]));
    }
    sequence.block_hashes.push_back(mixed(chain, static_cast<uint64_t>(end)));
  }
}

uint64_t KvBlocks::content_of(const Sequence& sequence, int64_t index) const {
  const auto i = static_cast<size_t>(index);
  if (i < sequence.block_hashes.size()) return sequence.block_hashes[i];
  return mixed(static_cast<uint64_t>(sequence.request.id) << 20U, static_cast<uint64_t>(index));
}

int32_t KvBlocks::find(const Sequence& sequence, int64_t index) const {
  const auto i = static_cast<size_t>(index);
  if (i < sequence.block_hashes.size()) {
    const auto found = by_content_.find(sequence.block_hashes[i]);
    return found == by_content_.end() ? none : found->second;
  }
  // Content that no other request has: where it was, or nowhere.
  if (i >= sequence.former_blocks.size()) return none;
  const int32_t block = sequence.former_blocks[i];
  return blocks_[static_cast<size_t>(block)].content == content_of(sequence, index) ? block : none;
}

KvBlocks::Prefix KvBlocks::find_prefix(const Sequence& sequence, int64_t most_tokens) const {
  Prefix prefix;
  if (!prefix_caching_) return prefix;
  const int64_t most = most_tokens / block_size_;
  while (prefix.blocks < most) {
    const int32_t block = find(sequence, prefix.blocks);
    if (block == none) break;
    ++prefix.blocks;
    if (blocks_[static_cast<size_t>(block)].holders == 0) ++prefix.free;
  }
  return prefix;
}

void KvBlocks::take_prefix(Sequence& sequence, const Prefix& prefix) {
  ensure(sequence.blocks.empty(), "a prefix is taken first");
  for (int64_t i = 0; i < prefix.blocks; ++i) {
    const int32_t index = find(sequence, i);
    Block& block = blocks_[static_cast<size_t>(index)];
    if (block.holders++ == 0) {
      remove_free(index);
      ++used_;
    }
    sequence.blocks.push_back(index);
  }
  sequence.published_blocks = prefix.blocks;
  sequence.former_blocks.clear();
  check();
}

bool KvBlocks::cover(Sequence& sequence, int64_t tokens) {
  const int64_t needed = missing(sequence, tokens);
  if (needed > free_) return false;
  for (int64_t i = 0; i < needed; ++i) {
    const int32_t index = take_oldest();
    blocks_[static_cast<size_t>(index)].holders = 1;
    ++used_;
    sequence.blocks.push_back(index);
  }
  check();
  return true;
}

void KvBlocks::publish(Sequence& sequence) {
  if (!prefix_caching_) return;
  const int64_t full = sequence.computed / block_size_;
  for (int64_t i = sequence.published_blocks; i < full; ++i) {
    const int32_t index = sequence.blocks[static_cast<size_t>(i)];
    Block& block = blocks_[static_cast<size_t>(index)];
    block.content = content_of(sequence, i);
    if (i >= static_cast<int64_t>(sequence.block_hashes.size())) continue;
    block.shared = true;
    const auto [place, fresh] = by_content_.try_emplace(block.content, index);
    if (fresh) continue;
    int32_t copy = place->second;
    while (blocks_[static_cast<size_t>(copy)].next_copy != none) copy = blocks_[static_cast<size_t>(copy)].next_copy;
    blocks_[static_cast<size_t>(copy)].next_copy = index;
  }
  sequence.published_blocks = std::max(sequence.published_blocks, full);
}

void KvBlocks::give_back(Sequence& sequence) {
  for (size_t i = sequence.blocks.size(); i-- > 0;) {
    const int32_t index = sequence.blocks[i];
    if (--blocks_[static_cast<size_t>(index)].holders > 0) continue;
    --used_;
    append_free(index);
  }
  sequence.former_blocks.swap(sequence.blocks);
  sequence.blocks.clear();
  sequence.published_blocks = 0;
  check();
}

void KvBlocks::append_free(int32_t index) {
  Block& block = blocks_[static_cast<size_t>(index)];
  block.previous = last_free_;
  block.next = none;
  (last_free_ == none ? first_free_ : blocks_[static_cast<size_t>(last_free_)].next) = index;
  last_free_ = index;
  ++free_;
}

void KvBlocks::remove_free(int32_t index) {
  const Block& block = blocks_[static_cast<size_t>(index)];
  (block.previous == none ? first_free_ : blocks_[static_cast<size_t>(block.previous)].next) = block.next;
  (block.next == none ? last_free_ : blocks_[static_cast<size_t>(block.next)].previous) = block.previous;
  --free_;
}

int32_t KvBlocks::take_oldest() {
  const int32_t index = first_free_;
  remove_free(index);
  forget(index);
  return index;
}

void KvBlocks::forget(int32_t index) {
  Block& block = blocks_[static_cast<size_t>(index)];
  if (block.shared) {
    const auto place = by_content_.find(block.content);
    if (place->second == index) {
      if (block.next_copy == none) {
        by_content_.erase(place);
      } else {
        place->second = block.next_copy;
      }
    } else {
      int32_t copy = place->second;
      while (blocks_[static_cast<size_t>(copy)].next_copy != index) copy = blocks_[static_cast<size_t>(copy)].next_copy;
      blocks_[static_cast<size_t>(copy)].next_copy = block.next_copy;
    }
  }
  block.content = 0;
  block.next_copy = none;
  block.shared = false;
}

void KvBlocks::check() const {
  ensure(free_ + used_ == static_cast<int64_t>(blocks_.size()), "every block is free or used");
}

}  // namespace foretoken
