#include "serving/scheduling/kv_blocks.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/look_ahead.h"
#include "serving/scheduling/block_chain.h"
#include "serving/tiers/replica_tiers.h"

namespace foretoken {
namespace {

constexpr int64_t longest_sequence = int64_t{1} << 40;  // windows and states alone hold any

// Blocks that hold one block_size of tokens in all groups that keep every token; 0 where contents cannot be told apart
// so.
int64_t blocks_in_row(const std::vector<CacheGroup>& groups, int64_t block_size) {
  if (groups.empty()) return 1;
  int64_t blocks = 0;
  for (const CacheGroup& group : groups) {
    if (group.block_tokens == 0) return 0;
    if (group.window > 0) continue;
    if (group.block_tokens != block_size) return 0;
    ++blocks;
  }
  return blocks;
}

}  // namespace

KvBlocks::KvBlocks(int64_t blocks, int64_t block_size, bool prefix_caching, std::vector<CacheGroup> groups,
                   ReplicaTiers* tiers)
    : block_size_(block_size),
      total_(blocks),
      block_bits_(std::has_single_bit(static_cast<uint64_t>(block_size))
                      ? std::countr_zero(static_cast<uint64_t>(block_size))
                      : -1),
      groups_(std::move(groups)),
      row_blocks_(blocks_in_row(groups_, block_size)),
      prefix_caching_(prefix_caching && row_blocks_ > 0),
      tiers_(tiers) {
  if (blocks > 0) append_free(blocks, none);
  check();
}

int64_t KvBlocks::blocks_of_groups(int64_t tokens) const {
  int64_t blocks = 0;
  for (const CacheGroup& group : groups_) blocks += sequence_blocks(group, tokens, 1);
  return blocks;
}

int64_t KvBlocks::tokens_in(int64_t blocks) const {
  if (groups_.empty()) return blocks * block_size_;
  int64_t fits = 0, too_many = longest_sequence;
  while (too_many - fits > 1) {
    const int64_t middle = fits + (too_many - fits) / 2;
    (blocks_for(middle) <= blocks ? fits : too_many) = middle;
  }
  return fits;
}

int64_t KvBlocks::most_missing(int64_t tokens) const {
  return groups_.empty() ? blocks_of_size(tokens) : total_;
}

void KvBlocks::describe(Sequence& sequence) const {
  const Request& request = sequence.request;
  if (!prefix_caching_ || request.prefix_blocks.empty() || request.prefix_block_tokens == 0) return;
  const int64_t described = static_cast<int64_t>(request.prefix_blocks.size()) * request.prefix_block_tokens;
  if (block_size_ == 1) sequence.content_rows = request.prefix_block_tokens;
  const int64_t each = content_tokens(sequence);
  // Tokens that went through an adapter have other keys and values (vLLM hashes its name with each block).
  uint64_t chain = request.adapter < 0 ? 1 : chained(1, static_cast<uint64_t>(request.adapter));
  size_t next_number = 0;
  // A block's content is everything up to its end, so a number that reaches beyond the block belongs to it.
  for (int64_t end = each; end <= described && end <= sequence.final_tokens(); end += each) {
    while (static_cast<int64_t>(next_number) * request.prefix_block_tokens < end) {
      chain = chained(chain, static_cast<uint64_t>(request.prefix_blocks[next_number++]));
    }
    sequence.block_hashes.push_back(chained(chain, static_cast<uint64_t>(end)));
  }
  set_next_content(sequence);
}

void KvBlocks::set_next_content(Sequence& sequence) const {
  const size_t known = sequence.contents.size();
  sequence.next_content_end = known < sequence.block_hashes.size()
                                  ? static_cast<int64_t>(known + 1) * content_tokens(sequence)
                                  : std::numeric_limits<int64_t>::max();
}

void KvBlocks::bring_near(std::span<const uint64_t> hashes) const {
  for (const uint64_t hash : hashes) by_hash_.bring_near(hash);
  for (const uint64_t hash : hashes) {
    if (const int32_t* found = by_hash_.find(hash)) __builtin_prefetch(&contents_[static_cast<size_t>(*found)]);
  }
}

// Contents that are forgotten some runs later.
void KvBlocks::bring_near_oldest() const {
  constexpr size_t soon = 4, later = 8;
  if (contents_.empty() || queue_.size() <= later) return;
  if (const int32_t content = queue_[later].content; content != none) {
    __builtin_prefetch(&contents_[static_cast<size_t>(content)]);
  }
  if (const int32_t content = queue_[soon].content; content != none) {
    by_hash_.bring_near(contents_[static_cast<size_t>(content)].hash);
  }
}

void KvBlocks::prefetch(const Sequence& sequence) const {
  if (tiers_ == nullptr) return;
  const std::span<const uint64_t> contents = sequence.block_hashes;
  const auto missing = [&](uint64_t hash) { return !by_hash_.contains(hash); };
  const auto first = std::find_if(contents.begin(), contents.end(), missing) - contents.begin();
  tiers_->prefetch(contents.subspan(static_cast<size_t>(first)), content_tokens(sequence));
}

KvBlocks::Prefix KvBlocks::find_prefix(const Sequence& sequence, int64_t most_tokens) const {
  Prefix prefix = find_here(sequence, most_tokens);
  if (tiers_ != nullptr) find_below(sequence, most_tokens, prefix);
  return prefix;
}

void KvBlocks::find_below(const Sequence& sequence, int64_t most_tokens, Prefix& prefix) const {
  const int64_t here = prefix.tokens, each = content_tokens(sequence);
  const int64_t most = most_tokens / block_size_ * block_size_;
  const auto described = static_cast<int64_t>(sequence.block_hashes.size()) * each;
  if (here % each == 0 && here < std::min(described, most)) {
    const auto wanted = static_cast<size_t>((std::min(described, most) - here + each - 1) / each);
    const auto contents = std::span(sequence.block_hashes).subspan(static_cast<size_t>(here / each), wanted);
    prefix.loaded = std::min(tiers_->find(contents, each, here) * each, most - here);
  }
  if (sequence.record.preemptions > 0) {
    const int64_t kept = std::min(tiers_->swapped_tokens(sequence.request.id), most_tokens);
    prefix.swapped = kept > here + prefix.loaded;
    if (prefix.swapped) prefix.loaded = kept - here;
  }
  prefix.tokens = here + prefix.loaded;
}

void KvBlocks::load(const Sequence& sequence, const Prefix& prefix) {
  const bool resumed = sequence.record.preemptions > 0;
  if (resumed) tiers_->swap_in(sequence.request.id, prefix.swapped ? prefix.loaded : 0);
  if (prefix.loaded == 0 || prefix.swapped) return;
  const int64_t each = content_tokens(sequence);
  const auto contents = std::span(sequence.block_hashes)
                            .subspan(static_cast<size_t>(prefix.tokens_here() / each),
                                     static_cast<size_t>((prefix.loaded + each - 1) / each));
  tiers_->load(contents, each, prefix.loaded, resumed);
}

KvBlocks::Prefix KvBlocks::find_here(const Sequence& sequence, int64_t most_tokens) const {
  Prefix prefix;
  if (!prefix_caching_) return prefix;
  const int64_t most = most_tokens / block_size_;
  int64_t rows = 0;
  const auto add = [&](int64_t more, bool free) {
    rows += more;
    prefix.tokens += more * block_size_;
    prefix.blocks += more * row_blocks_;
    if (free) prefix.free += more * row_blocks_;
  };
  const std::span<const uint64_t> hashes = sequence.block_hashes;
  for (size_t i = 0; i < hashes.size() && rows < most; ++i) {
    bring_group_near(hashes, i, [&](std::span<const uint64_t> group) { bring_near(group); });
    const int32_t* found = by_hash_.find(hashes[i]);
    if (found == nullptr) return prefix;
    add(sequence.content_rows, contents_[static_cast<size_t>(*found)].holders == 0);
  }
  if (rows > most) {  // the last content is held whole, though not all its tokens may be used
    prefix.tokens = most * block_size_;
    return prefix;
  }
  // Content that no other request has: where it was left, or nowhere.
  const FormerBlocks& former = sequence.former;
  const FreeRun* run = former.full > 0 && former.first == rows ? find_run(former.run) : nullptr;
  if (run != nullptr) add(std::min({run->blocks, former.full, most - rows}), true);
  return prefix;
}

void KvBlocks::take_prefix(Sequence& sequence, const Prefix& prefix) {
  ensure(sequence.blocks == 0, "a prefix is taken first");
  const int64_t each = content_tokens(sequence);
  const auto described =
      std::min(static_cast<size_t>((prefix.tokens_here() + each - 1) / each), sequence.block_hashes.size());
  for (size_t i = 0; i < described; ++i) {
    const int32_t* found = by_hash_.find(sequence.block_hashes[i]);
    ensure(found != nullptr, "a prefix that was found is there");
    const int32_t index = *found;
    Content& content = contents_[static_cast<size_t>(index)];
    if (content.holders++ == 0) find_run(content.place)->blocks = 0;
    sequence.contents.push_back(index);
    if (tiers_ != nullptr) tiers_->found_on_gpu(content.hash, each);
  }
  if (const int64_t own = prefix.blocks - static_cast<int64_t>(described) * content_blocks(sequence); own > 0) {
    find_run(sequence.former.run)->blocks -= own;
  }
  set_next_content(sequence);
  sequence.blocks = prefix.blocks;
  sequence.former = {};
  free_ -= prefix.free;
  used_ += prefix.free;
  check();
  if (tiers_ != nullptr) load(sequence, prefix);
}

bool KvBlocks::cover_more(Sequence& sequence, int64_t tokens) {
  const int64_t needed = missing(sequence, tokens);
  if (needed > free_) return false;
  if (needed == 0) return true;
  reuse_oldest(needed);
  sequence.blocks += needed;
  used_ += needed;
  check();
  return true;
}

void KvBlocks::publish_more(Sequence& sequence) {
  const auto full = static_cast<size_t>(sequence.computed / (sequence.content_rows * block_size_));
  const size_t described = std::min(full, sequence.block_hashes.size());
  const auto fresh = std::span<const uint64_t>(sequence.block_hashes)
                         .subspan(sequence.contents.size(), described - sequence.contents.size());
  for (const uint64_t hash : fresh) by_hash_.bring_near(hash);
  if (tiers_ != nullptr) tiers_->bring_near(fresh);
  while (sequence.contents.size() < described) {
    int32_t index = static_cast<int32_t>(contents_.size());
    if (spare_contents_.empty()) {
      contents_.emplace_back();
    } else {
      index = spare_contents_.back();
      spare_contents_.pop_back();
    }
    const uint64_t hash = sequence.block_hashes[sequence.contents.size()];
    contents_[static_cast<size_t>(index)] = {.hash = hash, .holders = 1};
    const auto [oldest, is_new] = by_hash_.put(hash, index);
    if (!is_new) {
      int32_t copy = oldest;
      while (contents_[static_cast<size_t>(copy)].next_copy != none)
        copy = contents_[static_cast<size_t>(copy)].next_copy;
      contents_[static_cast<size_t>(copy)].next_copy = index;
    }
    sequence.contents.push_back(index);
    if (tiers_ != nullptr) tiers_->computed(hash, content_tokens(sequence));
  }
  set_next_content(sequence);
}

void KvBlocks::give_back(Sequence& sequence) {
  const int64_t described = static_cast<int64_t>(sequence.contents.size()) * sequence.content_rows;
  int64_t freed = sequence.blocks - described * row_blocks_;
  sequence.former = {};
  if (freed > 0) {
    // Windows lie between the blocks of the other groups: which of them are left is not known.
    if (prefix_caching_ && groups_.empty()) {
      sequence.former = {.run = next_number_, .first = described, .full = sequence.computed / block_size_ - described};
    }
    append_free(freed, none);
  }
  if (tiers_ != nullptr) tiers_->let_go(std::span(sequence.block_hashes).first(sequence.contents.size()));
  for (size_t i = sequence.contents.size(); i-- > 0;) {
    Content& content = contents_[static_cast<size_t>(sequence.contents[i])];
    if (--content.holders > 0) continue;
    content.place = next_number_;
    append_free(content_blocks(sequence), sequence.contents[i]);
    freed += content_blocks(sequence);
  }
  used_ -= freed;
  sequence.contents.clear();
  set_next_content(sequence);
  sequence.blocks = 0;
  check();
}

void KvBlocks::give_up(Sequence& sequence) {
  if (tiers_ != nullptr) tiers_->swap_out(sequence.request.id, sequence.computed);
  give_back(sequence);
}

void KvBlocks::append_free(int64_t blocks, int32_t content) {
  const size_t most_runs = 1000 + 4 * static_cast<size_t>(total_);
  if (queue_.size() > most_runs) std::erase_if(queue_, [](const FreeRun& run) { return run.blocks == 0; });
  queue_.push_back({.number = next_number_++, .blocks = blocks, .content = content});
  free_ += blocks;
}

KvBlocks::FreeRun* KvBlocks::find_run(uint64_t number) {
  // Mostly none of those behind the front was taken out of the queue.
  if (!queue_.empty() && number >= queue_.front().number) {
    const uint64_t place = number - queue_.front().number;
    if (place < queue_.size() && queue_[place].number == number) return &queue_[place];
  }
  const auto run = std::lower_bound(queue_.begin(), queue_.end(), number,
                                    [](const FreeRun& one, uint64_t wanted) { return one.number < wanted; });
  return run != queue_.end() && run->number == number ? &*run : nullptr;
}

const KvBlocks::FreeRun* KvBlocks::find_run(uint64_t number) const {
  return const_cast<KvBlocks*>(this)->find_run(number);
}

void KvBlocks::reuse_oldest(int64_t blocks) {
  free_ -= blocks;
  while (blocks > 0) {
    bring_near_oldest();
    FreeRun& run = queue_.front();
    const int64_t taken = std::min(blocks, run.blocks);
    if (taken > 0 && run.content != none) {
      forget(std::exchange(run.content, none), run.blocks / row_blocks_ * block_size_);
    }
    run.blocks -= taken;
    blocks -= taken;
    if (run.blocks == 0) queue_.pop_front();
  }
}

void KvBlocks::forget(int32_t index, int64_t tokens) {
  const Content& content = contents_[static_cast<size_t>(index)];
  int32_t* oldest = by_hash_.find(content.hash);
  if (*oldest == index) {
    if (content.next_copy == none) {
      by_hash_.erase(content.hash);
      if (tiers_ != nullptr) tiers_->evicted(content.hash, tokens);
    } else {
      *oldest = content.next_copy;
    }
  } else {
    int32_t copy = *oldest;
    while (contents_[static_cast<size_t>(copy)].next_copy != index)
      copy = contents_[static_cast<size_t>(copy)].next_copy;
    contents_[static_cast<size_t>(copy)].next_copy = content.next_copy;
  }
  spare_contents_.push_back(index);
}

void KvBlocks::check() const {
  ensure(free_ + used_ == total_, "every block is free or used");
}

}  // namespace foretoken
