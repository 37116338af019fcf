// vLLM V1 (v1/core/sched/scheduler.py, v0.19.0). There is no prefill or decode phase: each step brings every sequence
// closer to the end of what is known of it, running ones first, in order of admission.
#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "base/error.h"
#include "serving/lora/adapter_slots.h"
#include "serving/schedulers/list.h"
#include "serving/schedulers/paged_scheduler.h"

namespace foretoken {
namespace {

class VllmScheduler final : public PagedScheduler {
 public:
  // Block 0 stands for "no block".
  explicit VllmScheduler(const SchedulerOptions& options) : PagedScheduler(options, options.num_gpu_blocks - 1, 0) {}

  // Without chunks a step computes a whole prompt; after a preemption the output so far too.
  int64_t capacity_tokens() const override {
    const int64_t in_cache = PagedScheduler::capacity_tokens();
    return options_.enable_chunked_prefill ? in_cache : std::min(in_cache, options_.max_num_batched_tokens);
  }

  void add(Sequence& sequence) override {
    PagedScheduler::add(sequence);
    if (by_urgency()) sort_in(sequence);
  }

  // A queue that is shed from changes while nothing else does.
  int64_t repeats(const Batch& batch) const override {
    if (options_.policy == QueuePolicy::deadline && !waiting_.empty()) return 0;
    return PagedScheduler::repeats(batch);
  }

  Sequence* first_late(Picoseconds now) const override {
    if (options_.policy != QueuePolicy::deadline) return nullptr;
    for (Sequence* sequence : waiting_) {
      if (sequence->latest_start >= now) return nullptr;
      if (sequence->record.scheduled < 0) return sequence;
    }
    return nullptr;
  }

  void schedule(Batch& batch) override {
    // A step for which the least urgent sequence preempted itself may be empty: an idle engine goes on to the next.
    bool served = false;
    do {
      int64_t budget = options_.max_num_batched_tokens;
      stays_blocked_ = false;
      served = serve_running(batch, budget);
      if (served) admit_waiting(batch, budget);
    } while (!served && batch.empty() && !any_in_flight());
  }

  // Where adapters wait for each other, one that is there already comes in past them.
  bool arrival_matters() const override { return by_urgency() || adapters_wait_ || PagedScheduler::arrival_matters(); }

 private:
  bool by_urgency() const { return options_.policy != QueuePolicy::fcfs; }

  bool goes_before(const Sequence& a, const Sequence& b) const {
    const auto urgency = [this](const Sequence& one) -> int64_t {
      return options_.policy == QueuePolicy::deadline ? one.latest_start : one.request.priority;
    };
    return std::tuple(urgency(a), a.request.arrival, a.request.id) <
           std::tuple(urgency(b), b.request.arrival, b.request.id);
  }

  bool any_in_flight() const {
    const auto in_flight = [](const Sequence* sequence) { return sequence->steps_in_flight > 0; };
    return std::any_of(running_.begin(), running_.end(), in_flight) ||
           std::any_of(waiting_.begin(), waiting_.end(), in_flight);
  }

  // Moves a sequence of the queue to its place.
  void sort_in(Sequence& sequence) {
    waiting_.erase(std::find(waiting_.begin(), waiting_.end(), &sequence));
    const auto before = [this](const Sequence* a, const Sequence* b) { return goes_before(*a, *b); };
    waiting_.insert(std::upper_bound(waiting_.begin(), waiting_.end(), &sequence, before), &sequence);
  }

  // Tokens of a running sequence that can be computed next. Through pipeline stages the chunks of a prompt follow each
  // other; only a decode needs the token of the step before.
  int64_t wanted(const Sequence& sequence) const {
    if (sequence.all_promised()) return 0;
    const bool overlaps = options_.async_scheduling && options_.pipeline_stages == 1;
    const bool decodes = sequence.computed >= sequence.prompt_end;
    if (decodes && sequence.steps_in_flight > 0 && !overlaps) return 0;
    return limited(sequence.tokens_left());
  }

  int64_t limited(int64_t tokens) const {
    const int64_t threshold = options_.long_prefill_token_threshold;
    return threshold > 0 ? std::min(tokens, threshold) : tokens;
  }

  // False when a sequence was preempted: nothing is admitted in such a step.
  bool serve_running(Batch& batch, int64_t& budget) {
    bool preempted = false;
    for (size_t i = 0; i < running_.size() && budget > 0; ++i) {
      Sequence& sequence = *running_[i];
      const int64_t tokens = std::min(wanted(sequence), budget);
      if (tokens == 0) continue;
      while (!kv_.cover(sequence, tokens_after(sequence, tokens))) {
        preempted = true;
        preempt_one(batch, budget, i);
        if (!sequence.running) return false;
      }
      const Drafts drafts = drafts_for(sequence, budget - tokens);
      batch.add(sequence, tokens, drafts);
      kv_.publish(sequence);
      budget -= tokens + drafts.verified;
    }
    return !preempted;
  }

  // First come, first served: the last admitted goes, which has no place in this step yet. Else the least
  // urgent; the step gets back what it was to compute, and `next` stays with the sequence being served.
  void preempt_one(Batch& batch, int64_t& budget, size_t& next) {
    auto victim = std::prev(running_.end());
    if (by_urgency()) {
      victim = std::max_element(running_.begin(), running_.end(),
                                [this](const Sequence* a, const Sequence* b) { return goes_before(*a, *b); });
    }
    Sequence& sequence = **victim;
    if (static_cast<size_t>(victim - running_.begin()) < next) {
      const int64_t before = batch.step().new_tokens();
      batch.remove(sequence);
      budget += before - batch.step().new_tokens();
      --next;
    }
    preempt(sequence);
    if (by_urgency()) sort_in(sequence);
  }

  void admit_waiting(Batch& batch, int64_t& budget) {
    AdapterSlots slots(options_.max_loras, running_);
    std::vector<Sequence*> set_aside;  // their adapters have no slot: those behind them go first
    admit_those_with_slots(batch, budget, slots, set_aside);
    waiting_.insert(waiting_.begin(), set_aside.begin(), set_aside.end());
    adapters_wait_ = !set_aside.empty();
  }

  void admit_those_with_slots(Batch& batch, int64_t& budget, AdapterSlots& slots, std::vector<Sequence*>& set_aside) {
    while (!waiting_.empty()) {
      if (budget == 0 || full()) {
        stays_blocked_ = true;
        return;
      }
      Sequence& sequence = *waiting_.front();
      if (!slots.has_room(sequence.request.adapter)) {
        waiting_.pop_front();
        set_aside.push_back(&sequence);
        continue;
      }
      if (is_on_the_way(sequence)) return;
      const int64_t known = sequence.known_tokens();
      // The last token is always computed, or none would come out.
      const KvBlocks::Prefix prefix = kv_.find_prefix(sequence, known - 1);
      const int64_t cached = prefix.tokens;
      const int64_t wanted = limited(known - cached);
      if (!options_.enable_chunked_prefill && wanted > budget) return;
      const int64_t tokens = std::min(wanted, budget);
      const int64_t reserved = options_.scheduler_reserve_full_isl ? known : cached + tokens;
      if (loads_apart(prefix) && load_apart(reserved, prefix)) continue;
      if (loads_apart(prefix) || !admit(cached + tokens, reserved, prefix)) {
        stays_blocked_ = true;
        return;
      }
      batch.add(sequence, tokens);
      kv_.publish(sequence);
      budget -= tokens;
      slots.take(sequence.request.adapter);
    }
    stays_blocked_ = !set_aside.empty();  // until a sequence ends
  }

  bool adapters_wait_ = false;
};

}  // namespace

std::unique_ptr<Scheduler> make_vllm(const SchedulerOptions& options) {
  if (!options.enable_chunked_prefill && options.max_model_len > options.max_num_batched_tokens) {
    throw InputError({.field = "enable_chunked_prefill",
                      .value = fmt::format("off with {{max_num_batched_tokens}} {}, {{max_model_len}} {}",
                                           options.max_num_batched_tokens, options.max_model_len),
                      .expected = "steps that can hold the longest prompt: this engine would not start",
                      .suggestion = fmt::format("{{max_num_batched_tokens}} {}", options.max_model_len)});
  }
  return std::make_unique<VllmScheduler>(options);
}

}  // namespace foretoken
