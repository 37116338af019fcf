// Data-parallel ranks that take every step together.
#include <gtest/gtest.h>

#include "serving/test_support.h"

namespace foretoken::lock_step_ranks_test {

std::vector<RequestRecord> serve(std::vector<Request> requests, const SchedulerOptions& options, bool repeat = true) {
  LinearTimes times({.step = 0.01, .token = 1e-4, .context_token = 0});
  ListedRequests source(std::move(requests));
  RecordedRun run;
  simulate({.replicas = {{.options = options, .times = &times}}, .repeat_decodes = repeat}, source, run);
  return run.sorted();
}

Request request(int64_t id, double arrival, int64_t input, int64_t output) {
  return {.id = id,
          .arrival = to_picoseconds(Seconds(arrival)),
          .input_tokens = input,
          .output_tokens = output,
          .prefix_blocks = {}};
}

TEST(LockStepRanks, a_prompt_of_one_rank_holds_up_the_decodes_of_another) {
  const SchedulerOptions options{
      .max_num_batched_tokens = 2048, .num_gpu_blocks = 1000, .async_scheduling = false, .lock_step_ranks = 2};
  const auto alone = serve({request(0, 0, 16, 50)}, options);
  const auto beside = serve({request(0, 0, 16, 50), request(1, 0.1, 2000, 1)}, options);
  EXPECT_NEAR(to_seconds(alone[0].last_token).value(), 50 * 0.01 + (16 + 49) * 1e-4, 1e-9);
  // A step takes as long as the most that any rank has of prompts and of decodes.
  EXPECT_NEAR(to_seconds(beside[0].last_token).value(), 50 * 0.01 + (16 + 49 + 2000) * 1e-4, 1e-9);
}

TEST(LockStepRanks, equal_decodes_advanced_at_once_end_as_when_each_is_decided_alone) {
  const std::vector<Request> requests = random_requests(3, 200, 40, 300, 150);
  for (const int64_t ranks : {1, 3, 8}) {
    const SchedulerOptions options{.max_num_seqs = 16, .num_gpu_blocks = 200, .lock_step_ranks = ranks};
    const auto at_once = serve(requests, options, true), one_by_one = serve(requests, options, false);
    ASSERT_EQ(at_once.size(), one_by_one.size());
    for (size_t i = 0; i < at_once.size(); ++i) {
      EXPECT_NEAR(static_cast<double>(at_once[i].last_token), static_cast<double>(one_by_one[i].last_token), 1e6);
      EXPECT_EQ(at_once[i].preemptions, one_by_one[i].preemptions);
    }
  }
}

// All that a run tells. One that watches every request keeps all sequences up to date.
class ToldRun final : public RunObserver {
 public:
  explicit ToldRun(bool watches_all) : watches_all_(watches_all) {}
  bool watches(int64_t /*request*/) const override { return watches_all_; }
  void step_ran(const StepRecord& step) override {
    told.insert(told.end(), {step.begin, step.end, step.repeats, step.decode_tokens, step.decode_context_tokens,
                             step.prefill_tokens, step.running, step.waiting, step.kv_blocks_used});
  }
  void token_gaps(Picoseconds gap, int64_t count) override { told.insert(told.end(), {gap, count}); }
  void request_ended(const RequestRecord& record) override {
    told.insert(told.end(), {record.id, record.scheduled, record.first_token, record.last_token, record.output_tokens,
                             record.preemptions, record.cached_tokens});
  }
  std::vector<int64_t> told;

 private:
  bool watches_all_;
};

TEST(LockStepRanks, ranks_that_go_on_as_they_are_tell_the_same_as_those_whose_sequences_are_kept_up_to_date) {
  const std::vector<Request> requests = random_requests(5, 600, 60, 300, 400);
  for (const char* scheduler : {"vllm", "sarathi", "sglang", "trtllm", "trtllm_max_utilization"}) {
    for (const int64_t blocks : {150, 2000}) {
      for (const bool async : {false, true}) {
        const SchedulerOptions options{.max_num_seqs = 40,
                                       .num_gpu_blocks = blocks,
                                       .async_scheduling = async,
                                       .lock_step_ranks = 4,
                                       .rank_router = "least_outstanding"};
        const auto told = [&](bool watched) {
          LinearTimes times({.step = 0.01, .token = 1e-4, .context_token = 1e-7});
          ListedRequests source(requests);
          ToldRun run(watched);
          simulate({.replicas = {{.scheduler = scheduler, .options = options, .times = &times}}}, source, run);
          return run.told;
        };
        EXPECT_EQ(told(false), told(true)) << scheduler << " " << blocks << " " << async;
      }
    }
  }
}

// How long the pieces of one request wait to be sent; others may be watched as well.
class WatchedSending final : public RunObserver {
 public:
  WatchedSending(int64_t request, bool watches_all) : request_(request), watches_all_(watches_all) {}
  bool watches(int64_t request) const override { return watches_all_ || request == request_; }
  void request_stepped(const RequestStep& own, const StepRecord& /*step*/) override {
    if (own.request == request_) told.insert(told.end(), {own.sending, own.last_sending});
  }
  std::vector<Picoseconds> told;

 private:
  int64_t request_;
  bool watches_all_;
};

TEST(LockStepRanks, pieces_of_a_watched_request_wait_behind_those_of_ranks_that_go_on_as_they_are) {
  const std::vector<Request> requests = random_requests(5, 300, 60, 300, 400);
  const auto told = [&](int64_t request, bool watches_all) {
    LinearTimes times({.step = 0.01, .token = 1e-4, .context_token = 1e-7});
    ListedRequests source(requests);
    WatchedSending run(request, watches_all);
    SimulationConfig config;
    config.replicas.push_back({.options = {.max_num_seqs = 40,
                                           .num_gpu_blocks = 2000,
                                           .lock_step_ranks = 4,
                                           .rank_router = "least_outstanding"},
                               .times = &times,
                               .front = {.piece = Seconds(50e-6)}});
    simulate(config, source, run);
    return run.told;
  };
  for (int64_t one = 100; one < 108; ++one) {  // on any rank
    const std::vector<Picoseconds> expected = told(one, true);
    EXPECT_FALSE(expected.empty()) << one;
    EXPECT_EQ(told(one, false), expected) << one;
  }
}

TEST(LockStepRanks, drafting_ranks_of_sglang_decode_nothing_while_one_computes_prompts) {
  const auto serve_sglang = [](bool stops) {
    LinearTimes times({.step = 0.01, .token = 1e-4, .context_token = 0});
    ListedRequests source({request(0, 0, 16, 50), request(1, 0.1, 8000, 1)});
    RecordedRun run;
    const SchedulerOptions options{.max_num_batched_tokens = 2000,
                                   .num_gpu_blocks = 1000,
                                   .async_scheduling = false,
                                   .lock_step_ranks = 2,
                                   .prompts_stop_ranks = stops};
    simulate({.replicas = {{.scheduler = "sglang", .options = options, .times = &times}}}, source, run);
    return run.sorted();
  };
  const auto beside = serve_sglang(false), apart = serve_sglang(true);
  // Four chunks of the long prompt, in which the other rank decodes, or does not.
  const double later = to_seconds(apart[0].last_token).value() - to_seconds(beside[0].last_token).value();
  EXPECT_NEAR(later, 4 * 0.01, 1e-9);
  EXPECT_LT(apart[1].first_token, beside[1].first_token);
}

}  // namespace foretoken::lock_step_ranks_test
