// Orca (OSDI 2022): the batch is chosen anew for each iteration; whole prompts run together with decodes, and cache for
// a request's longest possible sequence is set aside when it is admitted. Only the number of requests is limited.
#include "serving/schedulers/list.h"
#include "serving/schedulers/paged_scheduler.h"

namespace foretoken {
namespace {

class OrcaScheduler final : public PagedScheduler {
 public:
  explicit OrcaScheduler(const SchedulerOptions& options) : PagedScheduler(options, options.num_gpu_blocks, 0) {}

  void schedule(Batch& batch) override {
    for (Sequence* sequence : running_) {
      if (sequence->steps_in_flight == 0) batch.add(*sequence, sequence->tokens_left(), drafts_for(*sequence));
    }
    while (!waiting_.empty() && !full()) {
      Sequence& sequence = *waiting_.front();
      if (!admit(longest_tokens(sequence), longest_tokens(sequence))) break;
      batch.add(sequence, sequence.tokens_left());
    }
    stays_blocked_ = true;
  }
};

}  // namespace

std::unique_ptr<Scheduler> make_orca(const SchedulerOptions& options) {
  return std::make_unique<OrcaScheduler>(without_prefix_caching(options));
}

}  // namespace foretoken
