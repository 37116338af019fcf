// vLLM V0 (core/scheduler.py, v0.4): a step is either prompts alone, whole, in order of arrival, or decodes alone.
// Prompts go first. VIDUR's form of it (vllm_replica_scheduler.py, commit 7d475133) counts the token budget with
// prompts padded to the longest, as early versions of vLLM did, has no prefix cache, and puts into a step no more
// sequences than a pipeline stage's share of them.
#include <algorithm>

#include "serving/schedulers/list.h"
#include "serving/schedulers/paged_scheduler.h"

namespace foretoken {
namespace {

constexpr double v0_watermark = 0.01;

class VllmV0Scheduler final : public PagedScheduler {
 public:
  VllmV0Scheduler(const SchedulerOptions& options, bool as_vidur)
      : PagedScheduler(options, options.num_gpu_blocks, v0_watermark),
        padded_budget_(as_vidur),
        most_(as_vidur ? most_in_stage() : unlimited) {
    spare_blocks_ = 1;
  }

  void schedule(Batch& batch) override {
    stays_blocked_ = true;
    admit_prompts(batch);
    if (!batch.empty()) return;
    sort_by_arrival(running_);
    decode_all(batch, most_);
  }

 private:
  void admit_prompts(Batch& batch) {
    int64_t tokens = 0, longest = 0;
    while (!waiting_.empty() && !full() && static_cast<int64_t>(batch.entries().size()) < most_) {
      Sequence& sequence = *waiting_.front();
      const int64_t prompt = sequence.known_tokens();
      const auto prompts = static_cast<int64_t>(batch.entries().size()) + 1;
      longest = std::max(longest, prompt);
      tokens += prompt;
      // A prompt longer than the budget runs alone.
      if (prompts > 1 && (padded_budget_ ? prompts * longest : tokens) > options_.max_num_batched_tokens) return;
      const KvBlocks::Prefix prefix = kv_.find_prefix(sequence, prompt - 1);
      if (!admit(prompt, prompt, prefix)) return;
      batch.add(sequence, sequence.tokens_left());
      kv_.publish(sequence);
    }
  }

  bool padded_budget_;
  int64_t most_;  // sequences of a step
};

}  // namespace

std::unique_ptr<Scheduler> make_vllm_v0(const SchedulerOptions& options) {
  return std::make_unique<VllmV0Scheduler>(options, false);
}

std::unique_ptr<Scheduler> make_vidur_vllm(const SchedulerOptions& options) {
  SchedulerOptions without_cache = options;
  without_cache.enable_prefix_caching = false;
  return std::make_unique<VllmV0Scheduler>(without_cache, true);
}

}  // namespace foretoken
