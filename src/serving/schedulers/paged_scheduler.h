// What schedulers with a paged KV cache have in common: two queues, the blocks, and decodes that repeat.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "serving/kv_blocks.h"
#include "serving/scheduler.h"

namespace foretoken {

// Ties by id.
void sort_by_arrival(std::vector<Sequence*>& sequences);

class PagedScheduler : public Scheduler {
 public:
  int64_t capacity_tokens() const override { return kv_.tokens_in(blocks_ - watermark_blocks_ - spare_blocks_); }
  void add(Sequence& sequence) override;
  // All that runs decodes, and nothing that waits can be admitted before a sequence ends or preempts another.
  int64_t repeats(const Batch& batch) const override;
  void repeat(Batch& batch, int64_t count) override;
  bool arrival_matters() const override { return waiting_.empty(); }
  void release(Sequence& sequence) override;
  SchedulerLoad load() const override;

 protected:
  // `watermark` where the options have none.
  PagedScheduler(const SchedulerOptions& options, int64_t usable_blocks, double watermark);

  // Takes blocks for the first `tokens` of the sequence at the head of the queue, on top of `prefix`, and moves it to
  // the running ones; false when fewer than `reserved_tokens` and the watermark fit.
  bool admit(int64_t tokens, int64_t reserved_tokens, const KvBlocks::Prefix& prefix = {});
  // A running sequence goes back to the head of the queue; what it has computed is lost.
  void preempt(Sequence& sequence);
  // Adds all sequences past their prompt to the batch, but those in flight. Where no block is free the last of the
  // others is preempted (vLLM V0, core/block_manager.py: a decode may run when one block is free).
  void decode_all(Batch& batch);
  // A sequence of the queue that was preempted while a step of it runs cannot be taken yet: its last token is on the
  // way, or with pipeline stages the one that it goes on from.
  bool is_on_the_way(const Sequence& sequence) const {
    return sequence.all_promised() || (options_.pipeline_stages > 1 && sequence.steps_in_flight > 0);
  }
  bool full() const { return static_cast<int64_t>(running_.size()) >= options_.max_num_seqs; }

  SchedulerOptions options_;
  int64_t blocks_, watermark_blocks_;
  int64_t spare_blocks_ = 0;  // that decodes want to see free beyond those they take
  KvBlocks kv_;
  std::deque<Sequence*> waiting_;
  std::vector<Sequence*> running_;  // in order of admission, or of arrival where a kind sorts them
  // Set by schedule(): the head of the queue was refused for a reason that only running sequences can change.
  bool stays_blocked_ = false;

 private:
  void preempt_last();
  int64_t steps_that_fit(const Batch& batch, int64_t most) const;
};

}  // namespace foretoken
