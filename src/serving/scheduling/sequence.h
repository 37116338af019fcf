// A request inside an engine, and the steps it is part of.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "serving/requests/request.h"
#include "serving/speculation/speculation.h"
#include "serving/steps/step_times.h"

namespace foretoken {

// Blocks that a preempted sequence gave back and alone can find again.
struct FormerBlocks {
  uint64_t run = 0;   // where they are in the cache's queue
  int64_t first = 0;  // place of the first of them in the sequence
  int64_t full = 0;   // those filled with computed tokens
};

// A sequence of prompt and output tokens; each step computes some of them. A token comes out of the step that computes
// the last one known.
struct alignas(64) Sequence {
  // What every step touches comes first, on one cache line.
  int64_t promised = 0;    // output tokens that have come out or will at the end of a step in flight
  int64_t produced = 0;    // output tokens that have come out
  int64_t computed = 0;    // tokens whose KV is there or will be at the end of a step in flight
  int64_t prompt_end = 0;  // tokens to compute before it decodes: the prompt; after a preemption the output so far too
  int64_t blocks = 0;      // of the cache, that it holds
  // Of `computed`: from there on, another of its contents can be found (kv_blocks.h).
  int64_t next_content_end = std::numeric_limits<int64_t>::max();
  int32_t to_promise = 0;  // output tokens of the request
  int16_t steps_in_flight = 0;
  int16_t rank = 0;        // of the engine's ranks in lock step, where there are several
  bool running = false;    // admitted; else it waits
  bool watched = false;    // an observer wants to know its steps
  bool cancelled = false;  // its client has gone, and steps in flight still compute it
  bool spare = false;      // no request: to be used again
  bool outside = false;    // holds cache, but is in no queue: its prompt is computed elsewhere, or is to move there
  bool expected = false;   // of these, one whose prompt is to move here
  bool plain = true;       // its decodes are of tokens alone: no adapter, no thinking that ends somewhere
  Request request;
  RequestRecord record;
  Picoseconds latest_start = end_of_time;  // of its first step, to meet its TTFT goal
  int64_t sent = 0;  // output tokens that the client has or that are on the way to it, where pieces hold several
  // The cache's, see kv_blocks.h.
  std::vector<uint64_t> block_hashes;  // of the blocks that `request.prefix_blocks` describes
  int64_t content_rows = 1;            // blocks that one of these stands for
  std::vector<int32_t> contents;       // of its first blocks: those that others can find
  FormerBlocks former;

  int64_t known_tokens() const { return request.input_tokens + promised; }
  int64_t tokens_left() const { return known_tokens() - computed; }
  bool all_promised() const { return promised == to_promise; }
  // Tokens in the cache when the last one comes out, which is not put there.
  int64_t final_tokens() const { return request.input_tokens + request.output_tokens - 1; }
  // It is new: takes the request's place in the run, keeps the memory of what it was before.
  void begin(Request&& new_request);
  // Preempted: its tokens are to be computed again.
  void restart();
};

struct BatchEntry {
  Sequence* sequence = nullptr;
  int64_t new_tokens = 0;  // without drafts
  int64_t context_tokens = 0;
  int64_t yields = 0;  // tokens that come out: of a decode one more than the drafts accepted, up to its last token
  bool decodes = false;
  bool goes_on = false;  // a plain decode of one token that is neither the first nor the last
  Drafts drafts;
};

// Decodes of one rank that go on as they are, each with a token more at the end of every step. Where thousands run,
// their sequences are brought up to date only when something happens to the rank (Scheduler::settle).
struct QuietDecodes {
  std::vector<BatchEntry> entries;  // as they were in the step before the first of these
  StepBatch step;                   // that one
  int64_t chosen = 0;               // steps since
  int64_t ended = 0;                // of these
  Picoseconds last_token = 0;       // of all of them, once a step has ended
  bool settled = false;             // the sequences are up to date: steps that have not ended are theirs to count
};

// One step of an engine.
class Batch {
 public:
  // The sequence computes `new_tokens` more; a decode may verify drafts.
  void add(Sequence& sequence, int64_t new_tokens, const Drafts& drafts = {}) {
    // Most of all that is ever added: the next token of a sequence. The last one known is all that is left.
    const bool is_plain =
        sequence.plain && sequence.computed >= sequence.prompt_end && new_tokens == 1 && drafts.verified == 0;
    if (is_plain && !sequence.all_promised()) {
      add_decode(sequence);
    } else {
      add_any(sequence, new_tokens, drafts);
    }
  }
  // Work that no sequence asks for: `tokens` that fill up a prompt, on top of `context`; sequences that have ended but
  // still decode.
  void add_padding(int64_t tokens, int64_t context);
  void add_idle_decodes(int64_t count, int64_t context_each);
  // Undoes `add` before the step runs.
  void remove(Sequence& sequence);
  // A step of ranks in lock step: takes in what one more of them does.
  void join(const Batch& rank);
  // The same of one that goes on as it is, for its last chosen step.
  void join(const std::shared_ptr<QuietDecodes>& rank);
  // The step ran `count` times and runs once more. Only for decodes.
  void repeat(int64_t count);
  void clear();

  std::span<const BatchEntry> entries() const { return {entries_.data(), filled_}; }
  // Places of those that do not go on as they are: where something begins or ends.
  std::span<const uint32_t> changing() const { return changing_; }
  // Between the entries: ranks that go on as they are come before the one at `place`.
  struct QuietPart {
    size_t place = 0;
    std::shared_ptr<QuietDecodes> decodes;
  };
  std::span<const QuietPart> quiet_parts() const { return quiet_parts_; }
  bool empty() const { return filled_ == 0 && quiet_parts_.empty(); }
  bool only_decodes() const { return prompts_.empty(); }
  // Some sequence gets its last token at the end.
  bool ends_sequence() const { return ends_sequence_; }
  int64_t prefill_tokens() const { return prefill_tokens_; }
  int64_t decodes() const { return decodes_; }  // with idle ones
  int64_t decode_context_tokens() const { return decode_context_; }
  int64_t drafted_tokens() const { return drafted_; }
  int64_t idle_decodes() const { return idle_decodes_; }
  int64_t prompt_count() const { return prompt_count_; }  // without padding, as the tokens
  int64_t prompt_context_tokens() const { return prompt_context_; }
  int64_t accepted_drafts() const { return accepted_; }            // those that come out as tokens
  std::span<const int32_t> adapters() const { return adapters_; }  // different ones, in the order they came
  // What takes the time: of ranks in lock step the most that any of them has of each kind of work.
  StepBatch step() const;

 private:
  void add_decode(Sequence& sequence) {
    // Written where it stays: copied from elsewhere, its loads wait for stores of other widths, at every token.
    BatchEntry& entry = new_entry();
    entry.sequence = &sequence;
    entry.new_tokens = 1;
    entry.context_tokens = sequence.computed;
    entry.yields = 1;
    entry.decodes = true;
    entry.drafts = {};
    entry.goes_on = sequence.promised > 0 && sequence.promised + 1 < sequence.to_promise;
    if (!entry.goes_on) changing_.push_back(static_cast<uint32_t>(filled_ - 1));
    ++decodes_;
    decode_context_ += sequence.computed;
    longest_decode_ = std::max(longest_decode_, sequence.computed);
    ++sequence.computed;
    ++sequence.promised;
    ++sequence.steps_in_flight;
    ends_sequence_ = ends_sequence_ || sequence.all_promised();
  }
  // As some step before has left it.
  BatchEntry& new_entry() {
    if (filled_ == entries_.size()) entries_.resize(2 * filled_ + 16);
    return entries_[filled_++];
  }
  void add_any(Sequence& sequence, int64_t new_tokens, const Drafts& drafts);
  void add_images(const Request& request, int64_t from, int64_t to);
  void count_in(const StepBatch& rank);

  std::vector<BatchEntry> entries_;  // the first `filled_`; those behind them are memory for later ones
  size_t filled_ = 0;
  std::vector<uint32_t> changing_;
  std::vector<QuietPart> quiet_parts_;
  std::vector<PromptChunk> prompts_;
  std::vector<int32_t> adapters_;
  std::vector<int64_t> images_;  // patches of those encoded in the step
  int64_t decodes_ = 0, idle_decodes_ = 0, decode_context_ = 0, longest_decode_ = 0, drafted_ = 0, accepted_ = 0,
          prefill_tokens_ = 0;
  int64_t prompt_count_ = 0, prompt_context_ = 0, adapter_tokens_ = 0;
  int64_t ranks_ = 0;       // that were joined
  StepBatch busiest_ = {};  // of these; its prompts and images are the members above
  bool ends_sequence_ = false;
};

}  // namespace foretoken
