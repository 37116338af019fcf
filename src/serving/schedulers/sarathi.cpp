// Sarathi-Serve (OSDI 2024): every step takes all decodes, then prompt chunks until a fixed number of tokens. Written
// after VIDUR's form of it (sarathi_replica_scheduler.py, commit 7d475133): a prompt's blocks are all taken when it is
// admitted.
#include <algorithm>

#include "serving/schedulers/list.h"
#include "serving/schedulers/paged_scheduler.h"

namespace foretoken {
namespace {

constexpr double sarathi_watermark = 0.01;

class SarathiScheduler final : public PagedScheduler {
 public:
  explicit SarathiScheduler(const SchedulerOptions& options)
      : PagedScheduler(options, options.num_gpu_blocks, sarathi_watermark) {
    spare_blocks_ = 1;
  }

  void schedule(Batch& batch) override {
    stays_blocked_ = false;
    decode_all(batch);
    int64_t budget = options_.max_num_batched_tokens - batch.step().new_tokens();
    for (Sequence* sequence : running_) {
      const bool in_prompt = sequence->computed < sequence->prompt_end;
      if (in_prompt && sequence->steps_in_flight == 0) add_chunk(batch, *sequence, budget);
    }
    while (!waiting_.empty()) {
      if (full() || budget <= 0) {
        stays_blocked_ = true;
        break;
      }
      Sequence& sequence = *waiting_.front();
      const int64_t prompt = sequence.known_tokens();
      if (!admit(prompt, prompt, kv_.find_prefix(sequence, prompt - 1))) {
        stays_blocked_ = true;
        break;
      }
      add_chunk(batch, sequence, budget);
    }
    sort_by_arrival(running_);
  }

 private:
  void add_chunk(Batch& batch, Sequence& sequence, int64_t& budget) {
    const int64_t tokens = std::min(sequence.tokens_left(), budget);
    if (tokens <= 0) return;
    batch.add(sequence, tokens);
    kv_.publish(sequence);
    budget -= tokens;
  }
};

}  // namespace

std::unique_ptr<Scheduler> make_sarathi(const SchedulerOptions& options) {
  return std::make_unique<SarathiScheduler>(options);
}

}  // namespace foretoken
