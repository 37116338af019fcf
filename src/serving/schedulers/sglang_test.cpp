#include <algorithm>
#include <deque>

#include <gtest/gtest.h>

#include "serving/scheduling/scheduler.h"
#include "serving/test_support.h"

namespace foretoken::sglang_test {

// Eight sequences that were admitted in the hope that not all of them need their whole output at once: the pool has
// room for 23 tokens of each, step by step.
class FullPool {
 public:
  explicit FullPool(const Speculation& speculation) {
    SchedulerOptions options{.num_gpu_blocks = 226, .block_size = 1, .enable_prefix_caching = false};
    options.async_scheduling = false;
    options.speculation = speculation;
    scheduler_ = scheduler_kind("sglang").make(options);
    for (int64_t id = 0; id < 8; ++id) {
      sequences_.emplace_back().begin(
          {.id = id, .input_tokens = id == 0 ? 6 : 5, .output_tokens = 30, .prefix_blocks = {}});
      scheduler_->add(sequences_.back());
      run_step();
    }
  }

  // Sequences of the step.
  size_t run_step() {
    Batch batch;
    scheduler_->schedule(batch);
    for (const BatchEntry& entry : batch.entries()) {
      --entry.sequence->steps_in_flight;
      entry.sequence->produced += entry.yields;
    }
    return batch.entries().size();
  }

  std::vector<int64_t> retracted() const {
    std::vector<int64_t> ids;
    for (const Sequence& sequence : sequences_) {
      if (sequence.record.preemptions > 0) ids.push_back(sequence.request.id);
    }
    return ids;
  }

 private:
  std::unique_ptr<Scheduler> scheduler_;
  std::deque<Sequence> sequences_;
};

TEST(SglangRetraction, takes_out_no_more_than_the_next_step_needs) {
  FullPool pool({});
  for (int step = 0; step < 23; ++step) EXPECT_EQ(pool.run_step(), 8U);
  EXPECT_EQ(pool.run_step(), 7U);
  EXPECT_EQ(pool.run_step(), 7U);
  EXPECT_EQ(pool.retracted(), (std::vector<int64_t>{0})) << "of equal outputs the longest prompt";
}

TEST(SglangRetraction, with_drafts_the_last_of_the_batch_goes) {
  FullPool pool(
      {.draft_tokens = 3, .verified_tokens = 4, .lookahead_tokens = 3, .acceptance = Acceptance::constant(0, 3)});
  for (int step = 0; step < 30 && pool.retracted().empty(); ++step) pool.run_step();
  EXPECT_EQ(pool.retracted(), (std::vector<int64_t>{7}));
}

}  // namespace foretoken::sglang_test
