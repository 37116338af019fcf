#include "serving/schedulers/paged_scheduler.h"

#include <algorithm>
#include <tuple>

#include "base/error.h"
#include "serving/tiers/replica_tiers.h"

namespace foretoken {

void sort_by_arrival(std::vector<Sequence*>& sequences) {
  const auto earlier = [](const Sequence* a, const Sequence* b) {
    return std::tuple(a->request.arrival, a->request.id) < std::tuple(b->request.arrival, b->request.id);
  };
  if (!std::is_sorted(sequences.begin(), sequences.end(), earlier)) {
    std::sort(sequences.begin(), sequences.end(), earlier);
  }
}

SchedulerOptions without_prefix_caching(SchedulerOptions options) {
  options.enable_prefix_caching = false;
  return options;
}

PagedScheduler::PagedScheduler(const SchedulerOptions& options, int64_t usable_blocks, double watermark)
    : options_(options),
      blocks_(usable_blocks),
      watermark_blocks_(
          static_cast<int64_t>(options.watermark.value_or(watermark) * static_cast<double>(options.num_gpu_blocks))),
      kv_(usable_blocks, options.block_size, options.enable_prefix_caching, options.cache_groups, options.lower_tiers),
      most_in_stage_(std::max<int64_t>(1, options.max_num_seqs / options.pipeline_stages)) {}

void PagedScheduler::add(Sequence& sequence) {
  kv_.describe(sequence);
  kv_.prefetch(sequence);
  waiting_.push_back(&sequence);
}

int64_t PagedScheduler::repeats(const Batch& batch) const {
  if (!batch.only_decodes() || batch.entries().size() != running_.size()) return 0;
  if (batch.step().drafted_tokens > 0) return 0;  // what comes out differs from step to step
  if (!waiting_.empty() && !stays_blocked_) return 0;
  if (batch.ends_sequence()) return 0;  // of a large batch some sequence does in nearly every step
  int64_t count = batch.entries().front().sequence->to_promise;
  for (const BatchEntry& entry : batch.entries()) {
    if (entry.sequence->promised == entry.yields) return 0;  // its very first token, of a prompt computed elsewhere
    count = std::min(count, entry.sequence->to_promise - entry.sequence->promised);
  }
  return steps_that_fit(batch, count);
}

int64_t PagedScheduler::steps_that_fit(const Batch& batch, int64_t most) const {
  const auto fit = [&](int64_t steps) { return blocks_ahead(batch, steps) + spare_blocks_ <= kv_.free(); };
  const int64_t enough = kv_.most_missing(most + options_.speculation.slots());
  const auto sequences = static_cast<int64_t>(batch.entries().size());
  if (enough <= (kv_.free() - spare_blocks_) / sequences || fit(most)) return most;
  int64_t fits = 0, too_many = most;
  while (too_many - fits > 1) {
    const int64_t middle = fits + (too_many - fits) / 2;
    (fit(middle) ? fits : too_many) = middle;
  }
  return fits;
}

void PagedScheduler::repeat(Batch& batch, int64_t count) {
  batch.repeat(count);
  for (const BatchEntry& entry : batch.entries()) {
    const bool covered = kv_.cover(*entry.sequence, tokens_after(*entry.sequence, 0));
    ensure(covered, "repeated steps fit in the cache");
    kv_.publish(*entry.sequence);
  }
}

void PagedScheduler::release(Sequence& sequence) {
  if (sequence.running) {
    running_.erase(std::find(running_.begin(), running_.end(), &sequence));
  } else if (!sequence.outside) {
    waiting_.erase(std::find(waiting_.begin(), waiting_.end(), &sequence));
  }
  stop_expecting(sequence);
  kv_.give_back(sequence);
  take_received();
}

void PagedScheduler::set_aside(Sequence& sequence) {
  running_.erase(std::find(running_.begin(), running_.end(), &sequence));
  sequence.running = false;
  sequence.outside = true;
}

bool PagedScheduler::expect(Sequence& sequence, int64_t spare) {
  if (sequence.block_hashes.empty()) kv_.describe(sequence);  // else it was refused before
  const int64_t prompt = sequence.request.input_tokens;
  sequence.outside = take_blocks(sequence, prompt, prompt, kv_.find_prefix(sequence, prompt - 1), spare);
  sequence.expected = sequence.outside;
  expected_ += sequence.expected ? 1 : 0;
  return sequence.outside;
}

void PagedScheduler::stop_expecting(Sequence& sequence) {
  expected_ -= sequence.expected ? 1 : 0;
  sequence.expected = false;
}

void PagedScheduler::receive(Sequence& sequence) {
  ensure(sequence.outside, "a prompt arrives that was expected");
  sequence.outside = false;
  stop_expecting(sequence);
  kv_.publish(sequence);
  received_.push_back(&sequence);
  take_received();
}

void PagedScheduler::take_received() {
  while (!received_.empty() && !full()) {
    running_.push_back(received_.front());
    received_.front()->running = true;
    received_.pop_front();
  }
}

int64_t PagedScheduler::blocks_ahead(const Batch& batch, int64_t steps) const {
  int64_t blocks = 0;
  for (const BatchEntry& entry : batch.entries()) {
    blocks += kv_.missing(*entry.sequence, tokens_after(*entry.sequence, steps));
  }
  return blocks;
}

SchedulerLoad PagedScheduler::load() const {
  return {.running = static_cast<int64_t>(running_.size()),
          .waiting = static_cast<int64_t>(waiting_.size() + received_.size()),
          .blocks_used = kv_.used(),
          .blocks = blocks_};
}

bool PagedScheduler::admit(int64_t tokens, int64_t reserved_tokens, const KvBlocks::Prefix& prefix) {
  Sequence& sequence = *waiting_.front();
  if (!take_blocks(sequence, tokens, reserved_tokens, prefix)) return false;
  waiting_.pop_front();
  running_.push_back(&sequence);
  sequence.running = true;
  if (sequence.record.preemptions == 0) sequence.record.cached_tokens = sequence.computed;
  return true;
}

bool PagedScheduler::loads_apart(const KvBlocks::Prefix& prefix) const {
  return prefix.loaded > 0 && options_.lower_tiers->loads_apart();
}

bool PagedScheduler::load_apart(int64_t reserved_tokens, const KvBlocks::Prefix& prefix) {
  Sequence& sequence = *waiting_.front();
  if (!take_blocks(sequence, prefix.tokens, reserved_tokens, prefix)) return false;
  waiting_.pop_front();
  sequence.outside = true;
  if (sequence.record.preemptions == 0) sequence.record.cached_tokens = sequence.computed;
  options_.lower_tiers->set_apart(sequence);
  return true;
}

bool PagedScheduler::take_blocks(Sequence& sequence, int64_t tokens, int64_t reserved_tokens,
                                 const KvBlocks::Prefix& prefix, int64_t spare) {
  const int64_t blocks = kv_.blocks_for(reserved_tokens) - prefix.blocks + prefix.free;
  if (blocks > kv_.free() - watermark_blocks_ - spare) return false;
  sequence.computed = prefix.tokens;
  kv_.take_prefix(sequence, prefix);
  const bool covered = kv_.cover(sequence, tokens);
  ensure(covered, "an admitted prompt fits in the cache");
  return true;
}

void PagedScheduler::preempt(Sequence& sequence) {
  running_.erase(std::find(running_.begin(), running_.end(), &sequence));
  kv_.give_up(sequence);
  sequence.restart();
  waiting_.push_front(&sequence);
  stays_blocked_ = false;
}

void PagedScheduler::preempt_last(size_t first) {
  for (size_t i = running_.size(); i-- > first;) {
    if (running_[i]->steps_in_flight == 0) return preempt(*running_[i]);
  }
}

Drafts PagedScheduler::drawn_drafts(const Sequence& sequence, int64_t room) const {
  const Speculation& speculation = options_.speculation;
  if (sequence.computed < sequence.prompt_end) return {};
  const auto running = static_cast<int64_t>(running_.size());
  if (speculation.most_sequences > 0 && running > speculation.most_sequences) return {};
  return draw_drafts(speculation, sequence.request.id, sequence.promised, room);
}

size_t PagedScheduler::decode_all(Batch& batch, int64_t most) {
  size_t i = 0;
  for (; i < running_.size() && static_cast<int64_t>(batch.entries().size()) < most; ++i) {
    Sequence& sequence = *running_[i];
    if (sequence.computed < sequence.prompt_end || sequence.steps_in_flight > 0) continue;
    while (kv_.free() < 1 || !kv_.cover(sequence, tokens_after(sequence, 1))) {
      preempt_last(i);
      if (!sequence.running) return i;
    }
    batch.add(sequence, 1, drafts_for(sequence));
    kv_.publish(sequence);
  }
  return i;
}

}  // namespace foretoken
