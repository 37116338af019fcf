#include "serving/results/request_life.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "serving/results/request_details.h"
#include "serving/test_support.h"

namespace foretoken::request_life_test {

// Passes everything on to a recorder and to what is tested.
class Both : public RunObserver {
 public:
  Both(RecordedRun& run, RunObserver& other) : run_(run), other_(other) {}
  void request_ended(const RequestRecord& record) override {
    run_.request_ended(record);
    other_.request_ended(record);
  }
  void step_ran(const StepRecord& step) override { run_.step_ran(step); }
  void token_gaps(Picoseconds gap, int64_t count) override { run_.token_gaps(gap, count); }
  bool watches(int64_t request) const override { return other_.watches(request); }
  void request_stepped(const RequestStep& own, const StepRecord& step) override { other_.request_stepped(own, step); }

 private:
  RecordedRun& run_;
  RunObserver& other_;
};

RecordedRun serve_tight(const std::string& scheduler, RunObserver& watcher) {
  LinearTimes times({});
  ListedRequests source(random_requests(2, 150, 40, 400, 200));
  RecordedRun run;
  Both both(run, watcher);
  simulate({.replicas = {{.scheduler = scheduler,
                          .options = {.max_num_batched_tokens = 512, .max_num_seqs = 64, .num_gpu_blocks = 60},
                          .times = &times}}},
           source, both);
  return run;
}

TEST(RequestLife, parts_follow_each_other_from_arrival_to_last_token_and_hold_every_token) {
  int64_t preempted = 0;
  for (const char* scheduler : {"vllm", "sglang", "sarathi"}) {
    SCOPED_TRACE(scheduler);
    for (int64_t request = 0; request < 150; request += 7) {
      RequestLife life(request);
      const RecordedRun run = serve_tight(scheduler, life);
      ASSERT_TRUE(life.has_ended());
      Picoseconds now = life.record().arrival;
      int64_t tokens = 0, cached = 0, again = 0;
      for (const LifePart& part : life.parts()) {
        EXPECT_EQ(part.begin, now) << life_phase_name(part.phase);
        now = part.end;
        tokens += part.tokens;
        cached += part.cached_tokens;
        again += part.phase == LifePhase::recompute ? 1 : 0;
      }
      EXPECT_EQ(now, life.record().last_token);
      EXPECT_GE(tokens + cached, life.record().input_tokens + life.record().output_tokens - 1);
      if (life.record().preemptions == 0) {
        EXPECT_EQ(tokens + cached, life.record().input_tokens + life.record().output_tokens - 1);
      }
      preempted += again;
      Picoseconds sum = 0;
      for (const LifePart& part : life.totals()) sum += part.end - part.begin;
      EXPECT_EQ(sum, life.record().last_token - life.record().arrival);
    }
  }
  EXPECT_GT(preempted, 0) << "the workload is meant to preempt";
}

TEST(RequestLife, a_request_that_never_came_has_not_ended) {
  RequestLife life(1'000'000);
  serve_tight("vllm", life);
  EXPECT_FALSE(life.has_ended());
}

TEST(RequestDetails, gaps_of_each_request_lead_from_its_first_token_to_its_last) {
  RequestDetails details;
  const RecordedRun run = serve_tight("vllm", details);
  const std::vector<RequestDetail> all = details.by_id();
  ASSERT_EQ(all.size(), run.requests.size());
  int64_t gaps = 0;
  Picoseconds gap_time = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].record.id, static_cast<int64_t>(i));
    int64_t count = 0;
    Picoseconds sum = 0;
    for (const RequestDetail::Gaps& one : all[i].gaps) {
      count += one.count;
      sum += one.gap * one.count;
    }
    EXPECT_EQ(count, all[i].record.output_tokens - 1);
    EXPECT_NEAR(to_seconds(sum).value(), to_seconds(all[i].record.last_token - all[i].record.first_token).value(),
                1e-9);
    gaps += count;
    gap_time += sum;
  }
  EXPECT_EQ(gaps, run.gaps);
  EXPECT_EQ(gap_time, run.gap_time) << "the gaps that the metrics count";
}

TEST(RequestDetails, a_run_too_long_to_keep_is_refused) {
  RequestDetails details(1000);
  EXPECT_THROW(serve_tight("vllm", details), InputError);
}

}  // namespace foretoken::request_life_test
