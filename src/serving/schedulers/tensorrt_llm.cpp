// TensorRT-LLM's in-flight batching: generation first, then prompts that fit in the tokens left. Three policies say
// when a request may start (documentation of the capacity scheduler, 1.0).
#include <algorithm>

#include "base/error.h"
#include "serving/schedulers/list.h"
#include "serving/schedulers/paged_scheduler.h"

namespace foretoken {
namespace {

enum class Capacity : uint8_t {
  guaranteed_no_evict,  // blocks for its longest possible sequence are set aside: nothing is ever paused
  max_utilization,      // its present tokens fit; the last started is paused and later recomputed when blocks run out
  static_batch          // as guaranteed_no_evict, but only when all that ran before have ended
};

class TensorrtLlmScheduler final : public PagedScheduler {
 public:
  TensorrtLlmScheduler(const SchedulerOptions& options, Capacity capacity)
      : PagedScheduler(options, options.num_gpu_blocks, 0), capacity_(capacity) {}

  // llmapi/llm.py: without chunks a prompt that no step holds is an error.
  int64_t longest_prompt() const override {
    return options_.enable_chunked_prefill ? unlimited : options_.max_num_batched_tokens;
  }

  void schedule(Batch& batch) override {
    int64_t budget = options_.max_num_batched_tokens;
    stays_blocked_ = false;
    const bool was_idle = running_.empty();
    if (!generate(batch, budget)) return;            // blocks ran out: nothing starts
    if (batch.entries().size() < running_.size()) {  // else all of them generate
      for (Sequence* sequence : running_) {
        if (sequence->computed < sequence->prompt_end && ready(*sequence)) add_prompt(batch, *sequence, budget);
      }
    }
    if (capacity_ == Capacity::static_batch && !was_idle) {
      stays_blocked_ = true;
      return;
    }
    if (!batch.empty() && waits_for_more(batch, budget)) return;
    start(batch, budget);
  }

  void release(Sequence& sequence) override {
    if (sequence.running || sequence.outside) reserved_ -= longest(sequence);
    PagedScheduler::release(sequence);
  }

  // A prompt is sent to an engine only once it has a place among the `max_batch_size` that are active there (its
  // executor fetches no more requests than that).
  bool expect(Sequence& sequence, int64_t spare) override {
    if (places_taken() >= options_.max_num_seqs) return false;
    if (!guaranteed(sequence) || !PagedScheduler::expect(sequence, spare)) return false;
    reserved_ += longest(sequence);
    return true;
  }

 private:
  int64_t longest(const Sequence& sequence) const { return kv_.blocks_for(longest_tokens(sequence)); }

  bool guaranteed(const Sequence& sequence) const {
    return capacity_ == Capacity::max_utilization || reserved_ + longest(sequence) <= blocks_;
  }

  bool ready(const Sequence& sequence) const {
    const bool overlaps = options_.async_scheduling && options_.pipeline_stages == 1;
    return !sequence.all_promised() && (sequence.steps_in_flight == 0 || overlaps);
  }

  // Each pipeline stage has a batch of its own, of no more requests than `max_batch_size`.
  int64_t places_in(const Batch& batch) const { return most_in_stage() - static_cast<int64_t>(batch.entries().size()); }

  // False when a sequence had to be paused.
  bool generate(Batch& batch, int64_t& budget) {
    bool paused = false;
    for (size_t i = 0; i < running_.size() && budget > 0 && places_in(batch) > 0; ++i) {
      Sequence& sequence = *running_[i];
      if (sequence.computed < sequence.prompt_end || !ready(sequence)) continue;
      while (!kv_.cover(sequence, tokens_after(sequence, 1))) {
        ensure(capacity_ == Capacity::max_utilization, "blocks set aside are there when they are needed");
        paused = true;
        Sequence& last = *running_.back();
        reserved_ -= longest(last);
        preempt(last);
        if (!sequence.running) return false;
      }
      const Drafts drafts = drafts_for(sequence, budget - 1);
      batch.add(sequence, 1, drafts);
      kv_.publish(sequence);
      budget -= 1 + drafts.verified;
    }
    return !paused;
  }

  // Batch waiting (documentation of batch_wait_timeout_iters): prompts that could start are held back for fuller steps.
  bool waits_for_more(const Batch& batch, int64_t budget) {
    if (waited_ >= options_.batch_wait_timeout_iters || waiting_.empty()) {
      waited_ = 0;
      return false;
    }
    int64_t tokens = options_.max_num_batched_tokens - budget, blocks = blocks_ - reserved_;
    int64_t places = std::min(options_.max_num_seqs - static_cast<int64_t>(running_.size()), places_in(batch));
    for (const Sequence* sequence : waiting_) {
      blocks -= longest(*sequence);
      if (places-- <= 0 || blocks < 0 || tokens >= options_.max_num_batched_tokens) break;
      tokens += sequence->known_tokens();
    }
    const bool some = tokens > options_.max_num_batched_tokens - budget;
    const double enough = options_.batch_wait_max_tokens_ratio * static_cast<double>(options_.max_num_batched_tokens);
    const bool waits = some && static_cast<double>(tokens) < enough;
    waited_ = waits ? waited_ + 1 : 0;
    return waits;
  }

  void start(Batch& batch, int64_t& budget) {
    // A static batch is chosen as a whole: prompts beyond the step's tokens run in the next ones.
    const bool chooses_whole_batch = capacity_ == Capacity::static_batch;
    while (!waiting_.empty()) {
      const bool step_is_full = budget == 0 || places_in(batch) == 0;
      if (full() || (step_is_full && !chooses_whole_batch)) {
        stays_blocked_ = true;
        return;
      }
      Sequence& sequence = *waiting_.front();
      if (is_on_the_way(sequence)) return;
      const int64_t known = sequence.known_tokens();
      const KvBlocks::Prefix prefix = kv_.find_prefix(sequence, known - 1);
      const int64_t fresh = known - prefix.tokens;
      // What a paused sequence computes again, its output too, may be longer than a step: it then runs alone.
      const bool waits_for_step = !options_.enable_chunked_prefill && fresh > budget && !batch.empty();
      if (waits_for_step && !chooses_whole_batch) return;
      if (!guaranteed(sequence) || !admit(known, known, prefix)) {
        stays_blocked_ = true;
        return;
      }
      reserved_ += longest(sequence);
      add_prompt(batch, sequence, budget);
    }
  }

  void add_prompt(Batch& batch, Sequence& sequence, int64_t& budget) {
    const int64_t left = sequence.tokens_left();
    const int64_t tokens = options_.enable_chunked_prefill ? std::min(left, budget) : left;
    if (tokens <= 0 || places_in(batch) == 0 || (tokens > budget && !batch.empty())) return;
    batch.add(sequence, tokens);
    kv_.publish(sequence);
    budget = std::max<int64_t>(0, budget - tokens);
  }

  Capacity capacity_;
  int64_t waited_ = 0;    // steps in a row that prompts were held back
  int64_t reserved_ = 0;  // blocks of the longest possible sequences of all that run
};

}  // namespace

std::unique_ptr<Scheduler> make_tensorrt_llm(const SchedulerOptions& options) {
  return std::make_unique<TensorrtLlmScheduler>(options, Capacity::guaranteed_no_evict);
}

std::unique_ptr<Scheduler> make_tensorrt_llm_max_utilization(const SchedulerOptions& options) {
  return std::make_unique<TensorrtLlmScheduler>(options, Capacity::max_utilization);
}

std::unique_ptr<Scheduler> make_tensorrt_llm_static(const SchedulerOptions& options) {
  return std::make_unique<TensorrtLlmScheduler>(options, Capacity::static_batch);
}

}  // namespace foretoken
