// SGLang (managers/scheduler.py, schedule_policy.py, schedule_batch.py, main of August 2026): a step of prompts runs
// whenever one can be built, alone; else all running sequences decode. A request is admitted when its prompt, its
// output and a guess of what the others still need fit; where that was too hopeful, sequences are retracted. The radix
// cache is page by page here: leaves (the ends of sequences) are reused first, the longest unused first, pages that
// somebody holds never, which is the order of KvBlocks.
#include <algorithm>
#include <tuple>

#include "base/error.h"
#include "serving/schedulers/list.h"
#include "serving/schedulers/paged_scheduler.h"

namespace foretoken {
namespace {

constexpr int64_t most_prefill_tokens = 16384;  // max_prefill_tokens
constexpr int64_t most_counted_output = 4096;   // SGLANG_CLIP_MAX_NEW_TOKENS_ESTIMATION
constexpr int64_t retract_steps = 20;           // SGLANG_RETRACT_DECODE_STEPS: only the new ratio counts on them
constexpr double first_ratio = 0.7, least_ratio = 0.14 * first_ratio;
constexpr double ratio_decay = (first_ratio - least_ratio) / 600;

class SglangScheduler final : public PagedScheduler {
 public:
  explicit SglangScheduler(const SchedulerOptions& options) : PagedScheduler(options, options.num_gpu_blocks, 0) {}

  void schedule(Batch& batch) override {
    schedule_prompts(batch);
    if (batch.empty()) schedule_decodes(batch);
  }
  void schedule_prompts(Batch& batch) override { add_prompts(batch); }
  void schedule_decodes(Batch& batch) override { decode(batch); }

  void repeat(Batch& batch, int64_t count) override {
    PagedScheduler::repeat(batch, count);
    steps_since_retraction_ += count;
  }

  void release(Sequence& sequence) override {
    if (chunked_ == &sequence) chunked_ = nullptr;
    PagedScheduler::release(sequence);
  }

 private:
  // Share of the outputs left that running sequences are expected to need at once.
  double new_token_ratio() const {
    return std::max(least_ratio, ratio_at_retraction_ - ratio_decay * static_cast<double>(steps_since_retraction_));
  }

  static int64_t output_left(const Sequence& sequence) {
    return std::min(sequence.request.output_tokens - sequence.promised, most_counted_output);
  }

  // Tokens that running sequences are expected to add.
  double expected_growth() const {
    double tokens = 0;
    for (const Sequence* sequence : running_) tokens += static_cast<double>(output_left(*sequence));
    return tokens * new_token_ratio();
  }

  void add_prompts(Batch& batch) {
    int64_t budget = std::min(options_.max_num_batched_tokens, most_prefill_tokens);
    stays_blocked_ = false;
    if (chunked_ != nullptr) continue_chunk(batch, budget);
    if (waiting_.empty()) return;
    double room = static_cast<double>(kv_.free() * options_.block_size) - expected_growth();
    while (!waiting_.empty() && budget > 0 && !full()) {
      Sequence& sequence = *waiting_.front();
      if (is_on_the_way(sequence)) return;
      const int64_t known = sequence.known_tokens();
      const KvBlocks::Prefix prefix = kv_.find_prefix(sequence, known - 1);
      const int64_t cached = prefix.tokens;
      // Blocks of the prefix that nobody else holds count as room until they are taken; loaded tokens need new ones.
      const int64_t needed = known - prefix.tokens_here() + output_left(sequence) + prefix.free * options_.block_size;
      // An empty engine takes the next request whatever may come.
      if (static_cast<double>(needed) >= room && !running_.empty()) {
        stays_blocked_ = new_token_ratio() == least_ratio;
        return;
      }
      const int64_t tokens = std::min(known - cached, budget);
      if (!admit(cached + tokens, known, prefix)) return;
      room -= static_cast<double>(needed);
      add_chunk(batch, sequence, tokens, budget);
    }
    stays_blocked_ = full();
  }

  void continue_chunk(Batch& batch, int64_t& budget) {
    Sequence& sequence = *chunked_;
    const int64_t tokens = std::min(sequence.tokens_left(), budget);
    if (!kv_.cover(sequence, sequence.computed + tokens)) return;
    chunked_ = nullptr;
    add_chunk(batch, sequence, tokens, budget);
  }

  void add_chunk(Batch& batch, Sequence& sequence, int64_t tokens, int64_t& budget) {
    batch.add(sequence, tokens);
    kv_.publish(sequence);
    budget -= tokens;
    if (sequence.computed < sequence.prompt_end) chunked_ = &sequence;
  }

  bool decodes(const Sequence& sequence) const {
    const bool overlaps = options_.async_scheduling && options_.pipeline_stages == 1;
    return sequence.computed >= sequence.prompt_end && !sequence.all_promised() &&
           (sequence.steps_in_flight == 0 || overlaps);
  }

  // For the next step of all these.
  int64_t missing_blocks(const std::vector<Sequence*>& ready) const {
    int64_t blocks = 0;
    for (const Sequence* sequence : ready) blocks += kv_.missing(*sequence, tokens_after(*sequence, 1));
    return blocks;
  }

  void decode(Batch& batch) {
    std::vector<Sequence*>& ready = ready_;
    ready.clear();
    for (Sequence* sequence : running_) {
      if (decodes(*sequence)) ready.push_back(sequence);
    }
    if (missing_blocks(ready) > kv_.free()) {
      retract(ready);
    } else {
      ++steps_since_retraction_;
    }
    for (Sequence* sequence : ready) {
      if (!kv_.cover(*sequence, tokens_after(*sequence, 1))) continue;
      batch.add(*sequence, 1, drafts_for(*sequence));
      kv_.publish(*sequence);
    }
  }

  // Takes sequences out, at least one, until those that are left have room for their next step; one always stays. Those
  // with the shortest outputs (of these the longest inputs) go first, with drafts the last of the batch.
  void retract(std::vector<Sequence*>& ready) {
    std::vector<Sequence*> order(ready.rbegin(), ready.rend());
    if (options_.speculation.verified_tokens == 0) {
      std::sort(order.begin(), order.end(), [](const Sequence* a, const Sequence* b) {
        return std::tuple(a->promised, -a->request.input_tokens, a->request.id) <
               std::tuple(b->promised, -b->request.input_tokens, b->request.id);
      });
    }
    for (Sequence* sequence : order) {
      if (ready.size() == 1) break;
      ready.erase(std::find(ready.begin(), ready.end(), sequence));
      preempt(*sequence);
      waiting_.pop_front();
      waiting_.push_back(sequence);
      if (missing_blocks(ready) <= kv_.free()) break;
    }
    double known = 0, most = 0;
    for (const Sequence* sequence : ready) {
      known += static_cast<double>(sequence->promised + retract_steps);
      most += static_cast<double>(sequence->request.output_tokens);
    }
    ratio_at_retraction_ = std::min(1.0, known / most);
    steps_since_retraction_ = 0;
  }

  double ratio_at_retraction_ = first_ratio;  // or at the start
  int64_t steps_since_retraction_ = 0;        // that decoded
  std::vector<Sequence*> ready_;              // scratch
  Sequence* chunked_ = nullptr;               // its prompt is not all computed
};

}  // namespace

std::unique_ptr<Scheduler> make_sglang(const SchedulerOptions& options) {
  return std::make_unique<SglangScheduler>(options);
}

}  // namespace foretoken
