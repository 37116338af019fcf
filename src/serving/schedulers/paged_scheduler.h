// What schedulers with a paged KV cache have in common: two queues, the blocks, and decodes that repeat.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <vector>

#include "serving/scheduling/kv_blocks.h"
#include "serving/scheduling/scheduler.h"

namespace foretoken {

// Ties by id.
void sort_by_arrival(std::vector<Sequence*>& sequences);

// For kinds that never look for blocks of earlier prompts.
SchedulerOptions without_prefix_caching(SchedulerOptions options);

class PagedScheduler : public Scheduler {
 public:
  int64_t capacity_tokens() const override {
    return kv_.tokens_in(blocks_ - watermark_blocks_ - spare_blocks_) - options_.speculation.slots();
  }
  void add(Sequence& sequence) override;
  // All that runs decodes, and nothing that waits can be admitted before a sequence ends or preempts another.
  int64_t repeats(const Batch& batch) const override;
  void repeat(Batch& batch, int64_t count) override;
  bool arrival_matters() const override { return waiting_.empty(); }
  void release(Sequence& sequence) override;
  void set_aside(Sequence& sequence) override;
  bool expect(Sequence& sequence, int64_t spare) override;
  void receive(Sequence& sequence) override;
  int64_t blocks_ahead(const Batch& batch, int64_t steps) const override;
  SchedulerLoad load() const override;

 protected:
  static constexpr int64_t unlimited = std::numeric_limits<int64_t>::max();

  // `watermark` where the options have none.
  PagedScheduler(const SchedulerOptions& options, int64_t usable_blocks, double watermark);

  // Takes blocks for the first `tokens` of the sequence at the head of the queue, on top of `prefix`, and moves it to
  // the running ones; false when fewer than `reserved_tokens` and the watermark fit.
  bool admit(int64_t tokens, int64_t reserved_tokens, const KvBlocks::Prefix& prefix = {});
  // The same for any sequence that holds none, without moving it; `spare` more blocks must stay free.
  bool take_blocks(Sequence& sequence, int64_t tokens, int64_t reserved_tokens, const KvBlocks::Prefix& prefix,
                   int64_t spare = 0);
  // The head of the queue takes blocks for `prefix` and leaves: it comes back (`receive`) when the tiers below have
  // loaded their part. False when fewer than `reserved_tokens` and the watermark fit.
  bool load_apart(int64_t reserved_tokens, const KvBlocks::Prefix& prefix);
  bool loads_apart(const KvBlocks::Prefix& prefix) const;
  // A running sequence goes back to the head of the queue; what it has computed is lost.
  void preempt(Sequence& sequence);
  // Adds all sequences past their prompt to the batch, but those in flight, until it has `most` sequences; returns how
  // many of the running ones were looked at. Where no block is free the last of those that were not is preempted (vLLM
  // V0, core/block_manager.py: a decode may run when one block is free).
  size_t decode_all(Batch& batch, int64_t most = unlimited);
  // A sequence of the queue that was preempted while a step of it runs cannot be taken yet: its last token is on the
  // way, or with pipeline stages the one that it goes on from.
  bool is_on_the_way(const Sequence& sequence) const {
    return sequence.all_promised() || (options_.pipeline_stages > 1 && sequence.steps_in_flight > 0);
  }
  // What a decode of the sequence verifies when the step has room for `room` more tokens.
  Drafts drafts_for(const Sequence& sequence, int64_t room = unlimited) const {
    return options_.speculation.verified_tokens == 0 ? Drafts{} : drawn_drafts(sequence, room);
  }
  // Cache that a sequence needs to compute `tokens` more; a decode needs slots for drafts too.
  int64_t tokens_after(const Sequence& sequence, int64_t tokens) const {
    const bool decodes = sequence.computed >= sequence.prompt_end;
    return sequence.computed + tokens + (decodes ? options_.speculation.slots() : 0);
  }
  // Cache of the sequence at its longest.
  int64_t longest_tokens(const Sequence& sequence) const {
    return sequence.final_tokens() + options_.speculation.slots();
  }
  // VIDUR's and TensorRT-LLM's limit on a step: each pipeline stage holds its share of the sequences.
  int64_t most_in_stage() const { return most_in_stage_; }
  bool full() const { return static_cast<int64_t>(running_.size()) >= options_.max_num_seqs; }
  // Sequences that run or will as soon as their prompts are here.
  int64_t places_taken() const { return static_cast<int64_t>(running_.size() + received_.size()) + expected_; }

  SchedulerOptions options_;
  int64_t blocks_, watermark_blocks_;
  int64_t spare_blocks_ = 0;  // that decodes want to see free beyond those they take
  KvBlocks kv_;
  std::deque<Sequence*> waiting_;
  std::vector<Sequence*> running_;  // in order of admission, or of arrival where a kind sorts them
  // Set by schedule(): the head of the queue was refused for a reason that only running sequences can change.
  bool stays_blocked_ = false;

 private:
  Drafts drawn_drafts(const Sequence& sequence, int64_t room) const;
  void take_received();
  void stop_expecting(Sequence& sequence);
  void preempt_last(size_t first);  // of those from there on
  int64_t steps_that_fit(const Batch& batch, int64_t most) const;

  int64_t most_in_stage_;
  int64_t expected_ = 0;            // sequences whose prompts are on their way here
  std::deque<Sequence*> received_;  // with their whole prompt, while as many run as may
};

}  // namespace foretoken
