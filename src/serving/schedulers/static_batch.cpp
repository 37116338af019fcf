// Static batching (FasterTransformer): an idle engine takes what waits, up to a number of requests; their prompts run
// padded to the longest, and nothing is admitted until the longest output has ended. Those that end before keep their
// place in the batch.
#include <algorithm>

#include "serving/schedulers/list.h"
#include "serving/schedulers/paged_scheduler.h"

namespace foretoken {
namespace {

class StaticBatchScheduler final : public PagedScheduler {
 public:
  explicit StaticBatchScheduler(const SchedulerOptions& options) : PagedScheduler(options, options.num_gpu_blocks, 0) {}

  void schedule(Batch& batch) override {
    stays_blocked_ = true;
    if (running_.empty()) {
      take_prompts(batch);
      return;
    }
    int64_t longest = 0;
    for (Sequence* sequence : running_) {
      if (sequence->steps_in_flight > 0) return;  // the batch goes through the pipeline as one
      longest = std::max(longest, sequence->computed);
      batch.add(*sequence, sequence->tokens_left(), drafts_for(*sequence));
    }
    batch.add_idle_decodes(ended_, longest);
  }

  bool arrival_matters() const override { return running_.empty(); }

  void release(Sequence& sequence) override {
    PagedScheduler::release(sequence);
    ended_ = running_.empty() ? 0 : ended_ + 1;
  }

 private:
  void take_prompts(Batch& batch) {
    int64_t longest = 0;
    while (!waiting_.empty() && !full()) {
      Sequence& sequence = *waiting_.front();
      if (!admit(longest_tokens(sequence), longest_tokens(sequence))) break;
      longest = std::max(longest, sequence.request.input_tokens);
    }
    for (Sequence* sequence : running_) {
      const int64_t prompt = sequence->tokens_left();
      batch.add(*sequence, prompt);
      if (prompt < longest) batch.add_padding(longest - prompt, prompt);
    }
  }

  int64_t ended_ = 0;  // of the batch that runs
};

}  // namespace

std::unique_ptr<Scheduler> make_static_batch(const SchedulerOptions& options) {
  return std::make_unique<StaticBatchScheduler>(without_prefix_caching(options));
}

}  // namespace foretoken
