// Sarathi-Serve (OSDI 2024): every step takes all decodes, then prompt chunks until a fixed number of tokens. Written
// after VIDUR's form of it (sarathi_replica_scheduler.py, commit 7d475133): a prompt's blocks are all taken when it is
// admitted, a step has room for a pipeline stage's share of the sequences, and those that such a step left out come
// before those of the step that ended last.
#include <algorithm>
#include <iterator>

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
    const auto in_flight = [](const Sequence* sequence) { return sequence->steps_in_flight > 0; };
    elsewhere_.clear();
    std::copy_if(running_.begin(), running_.end(), std::back_inserter(elsewhere_), in_flight);
    const size_t seen = decode_all(batch, most_in_stage());
    int64_t budget = options_.max_num_batched_tokens - batch.step().new_tokens();
    for (size_t i = 0; i < seen; ++i) {
      Sequence& sequence = *running_[i];
      if (sequence.computed < sequence.prompt_end && !in_flight(&sequence)) add_chunk(batch, sequence, budget);
    }
    while (!waiting_.empty()) {
      const auto chosen = static_cast<int64_t>(batch.entries().size());
      stays_blocked_ = full() || budget <= 0 || chosen == most_in_stage();
      if (stays_blocked_) break;
      Sequence& sequence = *waiting_.front();
      const int64_t prompt = sequence.known_tokens();
      if (!admit(prompt, prompt, kv_.find_prefix(sequence, prompt - 1))) {
        stays_blocked_ = true;
        break;
      }
      add_chunk(batch, sequence, budget);
    }
    // For the next step: those left out by arrival, then those in flight in the order of their steps.
    std::erase_if(running_, in_flight);
    sort_by_arrival(running_);
    running_.insert(running_.end(), elsewhere_.begin(), elsewhere_.end());
    for (const BatchEntry& entry : batch.entries()) running_.push_back(entry.sequence);
  }

 private:
  void add_chunk(Batch& batch, Sequence& sequence, int64_t& budget) {
    const int64_t tokens = std::min(sequence.tokens_left(), budget);
    if (tokens <= 0) return;
    batch.add(sequence, tokens);
    kv_.publish(sequence);
    budget -= tokens;
  }

  std::vector<Sequence*> elsewhere_;  // scratch: in flight before this step
};

}  // namespace

std::unique_ptr<Scheduler> make_sarathi(const SchedulerOptions& options) {
  return std::make_unique<SarathiScheduler>(options);
}

}  // namespace foretoken
