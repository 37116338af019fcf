#include <deque>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "serving/scheduling/scheduler.h"
#include "serving/test_support.h"

namespace foretoken::vllm_test {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

// Drives a scheduler step by step; a step ends when the test says so.
class VllmScheduler : public testing::Test {
 protected:
  void use(const SchedulerOptions& options) { scheduler_ = scheduler_kind("vllm").make(options); }

  Sequence& add(Request request) {
    request.id = static_cast<int64_t>(sequences_.size());
    sequences_.emplace_back().begin(std::move(request));
    scheduler_->add(sequences_.back());
    return sequences_.back();
  }
  Sequence& add(int64_t input, int64_t output) { return add({.input_tokens = input, .output_tokens = output}); }

  // (id, new tokens) of the next step.
  std::vector<std::pair<int64_t, int64_t>> schedule() {
    Batch& batch = in_flight_.emplace_back();
    scheduler_->schedule(batch);
    std::vector<std::pair<int64_t, int64_t>> step;
    for (const BatchEntry& entry : batch.entries()) step.emplace_back(entry.sequence->request.id, entry.new_tokens);
    return step;
  }

  void end_step() {
    for (const BatchEntry& entry : in_flight_.front().entries()) {
      --entry.sequence->steps_in_flight;
      if (entry.yields == 0) continue;
      if (++entry.sequence->produced == entry.sequence->request.output_tokens) scheduler_->release(*entry.sequence);
    }
    in_flight_.pop_front();
  }

  std::vector<std::pair<int64_t, int64_t>> run_step() {
    const auto step = schedule();
    end_step();
    return step;
  }

  std::unique_ptr<Scheduler> scheduler_;
  std::deque<Sequence> sequences_;
  std::deque<Batch> in_flight_;
};

TEST_F(VllmScheduler, running_sequences_go_before_waiting_ones_and_prompts_fill_the_budget) {
  use({.max_num_batched_tokens = 100, .num_gpu_blocks = 100});
  add(60, 10);
  EXPECT_THAT(run_step(), ElementsAre(Pair(0, 60)));
  add(150, 10);
  add(50, 10);
  EXPECT_THAT(run_step(), ElementsAre(Pair(0, 1), Pair(1, 99)));
  EXPECT_THAT(run_step(), ElementsAre(Pair(0, 1), Pair(1, 51), Pair(2, 48)));
  EXPECT_THAT(run_step(), ElementsAre(Pair(0, 1), Pair(1, 1), Pair(2, 2)));
}

TEST_F(VllmScheduler, without_chunks_a_prompt_waits_for_a_step_that_holds_it) {
  use({.max_num_batched_tokens = 100, .num_gpu_blocks = 100, .enable_chunked_prefill = false});
  add(60, 10);
  add(60, 10);
  EXPECT_THAT(run_step(), ElementsAre(Pair(0, 60)));
  EXPECT_THAT(run_step(), ElementsAre(Pair(0, 1), Pair(1, 60)));
}

TEST_F(VllmScheduler, long_prompts_are_cut_at_the_threshold) {
  use({.max_num_batched_tokens = 100, .num_gpu_blocks = 100, .long_prefill_token_threshold = 30});
  add(70, 10);
  add(20, 10);
  EXPECT_THAT(run_step(), ElementsAre(Pair(0, 30), Pair(1, 20)));
}

TEST_F(VllmScheduler, no_more_sequences_run_than_allowed) {
  use({.max_num_seqs = 2, .num_gpu_blocks = 100});
  for (int i = 0; i < 3; ++i) add(10, 2);
  EXPECT_THAT(run_step(), ElementsAre(Pair(0, 10), Pair(1, 10)));
  EXPECT_THAT(run_step(), ElementsAre(Pair(0, 1), Pair(1, 1)));
  EXPECT_THAT(run_step(), ElementsAre(Pair(2, 10)));
}

TEST_F(VllmScheduler, a_full_cache_preempts_the_newest_sequence_which_comes_back_first) {
  use({.num_gpu_blocks = 1 + 4, .enable_prefix_caching = false});
  add(31, 40);
  add(31, 40);
  EXPECT_THAT(run_step(), ElementsAre(Pair(0, 31), Pair(1, 31)));
  EXPECT_THAT(run_step(), ElementsAre(Pair(0, 1), Pair(1, 1)));  // 32 tokens each: all 4 blocks are full
  add(1, 1);
  EXPECT_THAT(run_step(), ElementsAre(Pair(0, 1)));  // took a block of sequence 1; nothing is admitted in this step
  EXPECT_EQ(sequences_[1].record.preemptions, 1);
  EXPECT_EQ(scheduler_->load().waiting, 2);
  EXPECT_THAT(run_step(), ElementsAre(Pair(0, 1)));  // its 33 tokens do not fit, and nothing overtakes it
}

TEST_F(VllmScheduler, a_preempted_sequence_computes_prompt_and_output_again) {
  use({.num_gpu_blocks = 1 + 4, .enable_prefix_caching = false});
  add(31, 3);
  add(31, 40);
  run_step();
  run_step();
  EXPECT_THAT(run_step(), ElementsAre(Pair(0, 1)));  // its last token
  EXPECT_THAT(run_step(), ElementsAre(Pair(1, 33)));
  EXPECT_THAT(run_step(), ElementsAre(Pair(1, 1)));
}

TEST_F(VllmScheduler, by_priority_the_least_urgent_goes_even_if_it_was_chosen_already) {
  use({.num_gpu_blocks = 1 + 4, .policy = QueuePolicy::priority, .enable_prefix_caching = false});
  add({.input_tokens = 31, .output_tokens = 40, .priority = 9});
  add({.input_tokens = 31, .output_tokens = 40, .priority = 1});
  EXPECT_THAT(run_step(), ElementsAre(Pair(1, 31), Pair(0, 31)));
  run_step();
  EXPECT_THAT(run_step(), ElementsAre(Pair(1, 1)));
  EXPECT_EQ(sequences_[0].record.preemptions, 1);
}

TEST_F(VllmScheduler, by_priority_an_idle_engine_goes_on_when_the_first_sequence_gives_way_to_the_others) {
  use({.num_gpu_blocks = 1 + 4,
       .policy = QueuePolicy::priority,
       .enable_prefix_caching = false,
       .async_scheduling = false});
  add({.input_tokens = 31, .output_tokens = 40, .priority = 9});
  EXPECT_THAT(run_step(), ElementsAre(Pair(0, 31)));
  add({.input_tokens = 31, .output_tokens = 40, .priority = 1});
  EXPECT_THAT(run_step(), ElementsAre(Pair(0, 1), Pair(1, 31)));
  EXPECT_THAT(run_step(), ElementsAre(Pair(1, 1)));
  EXPECT_EQ(sequences_[0].record.preemptions, 1);
}

TEST_F(VllmScheduler, a_prompt_that_does_not_fit_whole_is_not_started) {
  use({.max_num_batched_tokens = 32, .num_gpu_blocks = 1 + 6});
  add(60, 10);
  run_step();
  run_step();
  add(64, 2);
  EXPECT_THAT(run_step(), ElementsAre(Pair(0, 1)));
  use({.max_num_batched_tokens = 32, .num_gpu_blocks = 1 + 6, .scheduler_reserve_full_isl = false});
  sequences_.clear();
  add(60, 10);
  run_step();
  run_step();
  add(64, 2);
  EXPECT_THAT(run_step(), ElementsAre(Pair(0, 1), Pair(1, 31)));
}

TEST_F(VllmScheduler, the_watermark_stays_free_when_a_request_is_admitted) {
  use({.num_gpu_blocks = 10, .watermark = 0.5});
  add(70, 10);
  EXPECT_THAT(schedule(), IsEmpty());
  use({.num_gpu_blocks = 10, .watermark = 0.4});
  sequences_.clear();
  add(70, 10);
  EXPECT_THAT(schedule(), ElementsAre(Pair(0, 70)));
}

TEST_F(VllmScheduler, a_prompt_hits_what_another_computes_in_the_same_step) {
  use({.num_gpu_blocks = 100});
  const Request shared{.input_tokens = 40, .output_tokens = 5, .prefix_block_tokens = 16, .prefix_blocks = {1, 2}};
  add(shared);
  add(shared);
  EXPECT_THAT(run_step(), ElementsAre(Pair(0, 40), Pair(1, 8)));
  EXPECT_EQ(sequences_[1].record.cached_tokens, 32);
}

TEST_F(VllmScheduler, scheduled_ahead_a_sequence_decodes_before_its_token_is_known_but_never_too_far) {
  use({.num_gpu_blocks = 100});
  add(10, 2);
  EXPECT_THAT(schedule(), ElementsAre(Pair(0, 10)));
  EXPECT_THAT(schedule(), ElementsAre(Pair(0, 1)));
  EXPECT_THAT(schedule(), IsEmpty());  // both tokens are on the way
  in_flight_.pop_back();
  add(10, 2);
  EXPECT_THAT(schedule(), ElementsAre(Pair(1, 10)));
}

TEST_F(VllmScheduler, step_by_step_a_sequence_in_flight_is_left_alone) {
  use({.num_gpu_blocks = 100, .async_scheduling = false});
  add(10, 3);
  EXPECT_THAT(schedule(), ElementsAre(Pair(0, 10)));
  EXPECT_THAT(schedule(), IsEmpty());
}

TEST_F(VllmScheduler, chunks_of_a_prompt_follow_each_other_through_pipeline_stages_and_decodes_do_not) {
  use({.max_num_batched_tokens = 100, .num_gpu_blocks = 100, .pipeline_stages = 4});
  Sequence& one = add(250, 10);
  EXPECT_THAT(schedule(), ElementsAre(Pair(0, 100)));
  EXPECT_THAT(schedule(), ElementsAre(Pair(0, 100)));
  EXPECT_EQ(one.promised, 0);
  EXPECT_THAT(schedule(), ElementsAre(Pair(0, 50)));
  EXPECT_EQ(one.promised, 1);  // by the last chunk alone
  EXPECT_THAT(schedule(), IsEmpty());
  in_flight_.pop_back();
  for (int chunk = 0; chunk < 3; ++chunk) {
    EXPECT_EQ(one.produced, 0);
    end_step();
  }
  EXPECT_EQ(one.produced, 1);
  EXPECT_THAT(schedule(), ElementsAre(Pair(0, 1)));
  EXPECT_THAT(schedule(), IsEmpty());  // the next token goes on from this one
}

TEST_F(VllmScheduler, a_prompt_preempted_with_several_chunks_in_flight_starts_again_once_they_have_ended) {
  use({.max_num_batched_tokens = 49,
       .num_gpu_blocks = 1 + 8,
       .enable_prefix_caching = false,
       .scheduler_reserve_full_isl = false,
       .long_prefill_token_threshold = 16,
       .pipeline_stages = 4});
  add(16, 60);
  run_step();
  Sequence& last = add(110, 2);
  EXPECT_THAT(schedule(), ElementsAre(Pair(0, 1), Pair(1, 16)));  // 2 + 1 blocks
  for (int chunk = 1; chunk < 6; ++chunk) EXPECT_THAT(schedule(), ElementsAre(Pair(1, 16)));
  EXPECT_THAT(schedule(), IsEmpty());  // no block is free
  in_flight_.pop_back();
  EXPECT_EQ(last.record.preemptions, 1);
  EXPECT_EQ(last.steps_in_flight, 6);
  for (int step = 0; step < 6; ++step) {
    EXPECT_THAT(scheduler_->load().waiting, 1);
    end_step();
  }
  EXPECT_THAT(schedule(), ElementsAre(Pair(0, 1), Pair(1, 16)));
}

TEST_F(VllmScheduler, decodes_repeat_until_one_ends_or_blocks_run_out) {
  use({.num_gpu_blocks = 100});
  add(10, 20);
  add(10, 30);
  run_step();
  schedule();
  EXPECT_EQ(scheduler_->repeats(in_flight_.front()), 18);
  use({.num_gpu_blocks = 1 + 3});
  sequences_.clear();
  in_flight_.clear();
  add(10, 38);
  add(10, 38);
  run_step();
  schedule();
  EXPECT_EQ(scheduler_->repeats(in_flight_.front()), 5);  // to 16 tokens each; then only one could have another block
}

TEST(VllmWithoutChunks, without_chunks_an_engine_whose_steps_do_not_hold_the_longest_prompt_does_not_start) {
  SchedulerOptions options{
      .max_num_batched_tokens = 512, .max_model_len = 513, .num_gpu_blocks = 1000, .enable_chunked_prefill = false};
  try {
    scheduler_kind("vllm").make(options);
    FAIL() << "vLLM refuses it";
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().suggestion, "{max_num_batched_tokens} 513");
  }
  options.max_model_len = 512;
  EXPECT_EQ(scheduler_kind("vllm").make(options)->capacity_tokens(), 512);
}

TEST(VllmWithoutChunks, without_chunks_and_without_a_longest_sequence_what_does_not_fit_in_a_step_is_refused) {
  LinearTimes times({});
  ListedRequests source({{.id = 0, .input_tokens = 600, .output_tokens = 5, .prefix_blocks = {}},
                         {.id = 1, .input_tokens = 500, .output_tokens = 5, .prefix_blocks = {}}});
  RecordedRun run;
  const SimulationTotals totals = simulate({.replicas = {{.options = {.max_num_batched_tokens = 512,
                                                                      .num_gpu_blocks = 1000,
                                                                      .enable_chunked_prefill = false},
                                                          .times = &times}}},
                                           source, run);
  EXPECT_EQ(totals.rejected, 1);
  EXPECT_EQ(totals.completed, 1);
}

}  // namespace foretoken::vllm_test
