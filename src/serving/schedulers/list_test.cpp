// What every scheduler must do, whatever it decides.
#include <gtest/gtest.h>

#include "base/error.h"
#include "serving/test_support.h"

namespace foretoken::schedulers_list_test {

struct Workload {
  const char* name;
  SchedulerOptions options;
  std::vector<Request> requests;
};

std::vector<Request> with_shared_prefixes(std::vector<Request> requests) {
  for (Request& request : requests) {
    request.prefix_block_tokens = 16;
    for (int64_t block = 0; block < request.input_tokens / 16; ++block) {
      request.prefix_blocks.push_back((request.id % 3) * 1000 + block);
    }
  }
  return requests;
}

std::vector<Workload> workloads() {
  const SchedulerOptions roomy{.max_num_batched_tokens = 512, .max_num_seqs = 64, .num_gpu_blocks = 4000};
  SchedulerOptions tight = roomy;  // a few requests at a time: preemption where a kind has it
  tight.num_gpu_blocks = 60;
  SchedulerOptions step_by_step = tight;
  step_by_step.async_scheduling = false;
  SchedulerOptions pipeline = roomy;
  pipeline.pipeline_stages = 3;
  SchedulerOptions few = roomy;
  few.max_num_seqs = 3;
  SchedulerOptions windows = tight;
  windows.cache_groups = {{.kind = "full attention", .block_tokens = 16},
                          {.kind = "window of 64", .block_tokens = 16, .window = 64}};
  SchedulerOptions drafts = tight;
  drafts.speculation = {
      .draft_tokens = 3, .verified_tokens = 5, .lookahead_tokens = 3, .acceptance = Acceptance::constant(0.7, 3)};
  SchedulerOptions few_drafts = roomy;  // only while few are running
  few_drafts.speculation = drafts.speculation;
  few_drafts.speculation.most_sequences = 6;
  return {{"roomy", roomy, random_requests(1, 150, 20, 400, 60)},
          {"tight", tight, random_requests(2, 150, 40, 400, 200)},
          {"tight_step_by_step", step_by_step, random_requests(3, 150, 40, 400, 200)},
          {"shared_prefixes", tight, with_shared_prefixes(random_requests(4, 150, 40, 400, 200))},
          {"windows", windows, random_requests(8, 100, 40, 300, 200)},
          {"drafts", drafts, random_requests(9, 150, 40, 300, 200)},
          {"few_drafts", few_drafts, random_requests(10, 150, 40, 300, 60)},
          {"pipeline", pipeline, random_requests(5, 150, 40, 400, 60)},
          {"few_at_a_time", few, random_requests(6, 100, 40, 400, 60)},
          {"all_at_once", roomy, random_requests(7, 100, 1e9, 400, 60)}};
}

struct Outcome {
  RecordedRun run;
  SimulationTotals totals;
};

Outcome serve(const SchedulerKind& kind, const Workload& workload, bool repeat_decodes = true) {
  LinearTimes times({});
  ListedRequests source(workload.requests);
  Outcome outcome;
  outcome.totals =
      simulate({.replicas = {{.scheduler = std::string(kind.name), .options = workload.options, .times = &times}},
                .repeat_decodes = repeat_decodes},
               source, outcome.run);
  return outcome;
}

int64_t most_blocks(const RecordedRun& run) {
  int64_t most = 0;
  for (const StepRecord& step : run.steps) most = std::max(most, step.kv_blocks_used + step.kv_blocks_grown);
  return most;
}

class Schedulers : public testing::TestWithParam<SchedulerKind> {};

TEST_P(Schedulers, serve_every_request_with_all_its_tokens) {
  for (const Workload& workload : workloads()) {
    SCOPED_TRACE(workload.name);
    const Outcome outcome = serve(GetParam(), workload);
    const std::vector<RequestRecord> records = outcome.run.sorted();
    ASSERT_EQ(records.size(), workload.requests.size());
    EXPECT_EQ(outcome.totals.completed, static_cast<int64_t>(records.size()));
    int64_t gaps = 0;
    Picoseconds between_tokens = 0;
    for (size_t i = 0; i < records.size(); ++i) {
      const RequestRecord& record = records[i];
      EXPECT_EQ(record.outcome, RequestOutcome::completed);
      EXPECT_EQ(record.output_tokens, workload.requests[i].output_tokens);
      EXPECT_LE(record.arrival, record.queued);
      EXPECT_LE(record.queued, record.scheduled);
      EXPECT_LT(record.scheduled, record.first_token);
      EXPECT_LE(record.first_token, record.last_token);
      gaps += record.output_tokens - 1;
      between_tokens += record.last_token - record.first_token;
    }
    if (workload.options.speculation.draft_tokens == 0) {
      EXPECT_EQ(outcome.run.gaps, gaps);
    } else {  // tokens that come out together have none between them
      EXPECT_LT(outcome.run.gaps, gaps);
    }
    // Equal steps advanced at once share their time out in whole picoseconds.
    EXPECT_NEAR(static_cast<double>(outcome.run.gap_time), static_cast<double>(between_tokens),
                1e-9 * static_cast<double>(between_tokens));
  }
}

// What a kind says it reads decides which flags are refused.
TEST_P(Schedulers, options_that_a_kind_does_not_read_change_nothing) {
  const SchedulerKind& kind = GetParam();
  for (const Workload& workload : workloads()) {
    SCOPED_TRACE(workload.name);
    Workload changed = workload;
    SchedulerOptions& options = changed.options;
    if (!kind.reads.policy) options.policy = QueuePolicy::priority;
    if (!kind.reads.chunked_prefill) options.enable_chunked_prefill = false;
    if (!kind.reads.prefix_caching) options.enable_prefix_caching = false;
    if (!kind.reads.reserve_full_isl) options.scheduler_reserve_full_isl = false;
    if (!kind.reads.long_prefill_threshold) options.long_prefill_token_threshold = 10;
    if (!kind.reads.batch_wait) options.batch_wait_timeout_iters = 10, options.batch_wait_max_tokens_ratio = 0.9;
    if (!kind.schedules_ahead) options.async_scheduling = !options.async_scheduling;
    const std::vector<RequestRecord> before = serve(kind, workload).run.sorted();
    const std::vector<RequestRecord> after = serve(kind, changed).run.sorted();
    ASSERT_EQ(before.size(), after.size());
    for (size_t i = 0; i < before.size(); ++i) {
      EXPECT_EQ(before[i].first_token, after[i].first_token);
      EXPECT_EQ(before[i].last_token, after[i].last_token);
    }
  }
}

TEST_P(Schedulers, compute_every_token_once_and_again_only_after_preemption) {
  for (const Workload& workload : workloads()) {
    SCOPED_TRACE(workload.name);
    const Outcome outcome = serve(GetParam(), workload);
    int64_t computed = 0, cached = 0, wanted = 0;
    for (const StepRecord& step : outcome.run.steps) {
      computed += step.prefill_tokens + step.decode_tokens * step.repeats + step.accepted_tokens;
      EXPECT_LE(step.kv_blocks_used + step.kv_blocks_grown, workload.options.num_gpu_blocks);
    }
    for (const RequestRecord& record : outcome.run.requests) {
      wanted += record.input_tokens + record.output_tokens - 1;
      cached += record.cached_tokens;
    }
    if (outcome.totals.preemptions == 0) {
      EXPECT_EQ(computed + cached, wanted);
    } else {
      EXPECT_GE(computed + cached, wanted);
    }
  }
}

TEST_P(Schedulers, steps_of_one_replica_follow_each_other) {
  for (const Workload& workload : workloads()) {
    if (workload.options.pipeline_stages > 1) continue;
    SCOPED_TRACE(workload.name);
    Picoseconds last_end = 0;
    int64_t steps = 0;
    for (const StepRecord& step : serve(GetParam(), workload).run.steps) {
      EXPECT_GE(step.begin, last_end);
      EXPECT_GT(step.end, step.begin);
      last_end = step.end;
      steps += step.repeats;
    }
    EXPECT_GT(steps, 0);
  }
}

TEST_P(Schedulers, give_the_same_answer_twice) {
  for (const Workload& workload : workloads()) {
    SCOPED_TRACE(workload.name);
    const Outcome one = serve(GetParam(), workload), two = serve(GetParam(), workload);
    ASSERT_EQ(one.run.requests.size(), two.run.requests.size());
    for (size_t i = 0; i < one.run.requests.size(); ++i) {
      EXPECT_EQ(one.run.requests[i].id, two.run.requests[i].id);
      EXPECT_EQ(one.run.requests[i].last_token, two.run.requests[i].last_token);
    }
  }
}

TEST_P(Schedulers, decide_the_same_when_equal_steps_are_advanced_at_once) {
  for (const Workload& workload : workloads()) {
    SCOPED_TRACE(workload.name);
    const Outcome fast = serve(GetParam(), workload), slow = serve(GetParam(), workload, false);
    EXPECT_EQ(fast.totals.steps, slow.totals.steps);
    EXPECT_EQ(fast.totals.preemptions, slow.totals.preemptions);
    EXPECT_LE(fast.totals.decisions, slow.totals.decisions);
    EXPECT_EQ(most_blocks(fast.run), most_blocks(slow.run));
    const std::vector<RequestRecord> a = fast.run.sorted(), b = slow.run.sorted();
    for (size_t i = 0; i < a.size(); ++i) {
      EXPECT_NEAR(to_seconds(a[i].queued).value(), to_seconds(b[i].queued).value(), 1e-9) << a[i].id;
      EXPECT_NEAR(to_seconds(a[i].scheduled).value(), to_seconds(b[i].scheduled).value(), 1e-9) << a[i].id;
      EXPECT_NEAR(to_seconds(a[i].first_token).value(), to_seconds(b[i].first_token).value(), 1e-9) << a[i].id;
      EXPECT_NEAR(to_seconds(a[i].last_token).value(), to_seconds(b[i].last_token).value(), 1e-9) << a[i].id;
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST_P(Schedulers, serve_a_lone_request_in_the_time_of_its_own_steps) {
  LinearTimes times({.step = 0.01, .token = 1e-5, .context_token = 1e-7});
  ListedRequests source(
      {{.id = 0, .arrival = one_second, .input_tokens = 100, .output_tokens = 3, .prefix_blocks = {}}});
  RecordedRun run;
  simulate(
      {.replicas = {{.scheduler = std::string(GetParam().name), .options = {.num_gpu_blocks = 100}, .times = &times}}},
      source, run);
  ASSERT_EQ(run.requests.size(), 1U);
  const RequestRecord& record = run.requests.front();
  EXPECT_NEAR(to_seconds(record.first_token).value(), 1 + 0.01 + 100e-5, 1e-12);
  EXPECT_NEAR(to_seconds(record.last_token - record.first_token).value(), 2 * (0.01 + 1e-5) + (100 + 101) * 1e-7,
              1e-12);
}

TEST_P(Schedulers, refuse_what_can_never_run_and_serve_the_rest) {
  LinearTimes times({});
  ListedRequests source({{.id = 0, .input_tokens = 10, .output_tokens = 0, .prefix_blocks = {}},
                         {.id = 1, .input_tokens = 0, .output_tokens = 10, .prefix_blocks = {}},
                         {.id = 2, .input_tokens = 800, .output_tokens = 10, .prefix_blocks = {}},
                         {.id = 3, .input_tokens = 400, .output_tokens = 10, .prefix_blocks = {}},
                         {.id = 4, .input_tokens = 100, .output_tokens = 10, .prefix_blocks = {}}});
  RecordedRun run;
  const SimulationTotals totals = simulate({.replicas = {{.scheduler = std::string(GetParam().name),
                                                          .options = {.max_model_len = 500, .num_gpu_blocks = 20},
                                                          .times = &times}}},
                                           source, run);
  EXPECT_EQ(totals.rejected, 4);
  EXPECT_EQ(totals.completed, 1);
  EXPECT_EQ(run.sorted().back().outcome, RequestOutcome::completed);
}

TEST_P(Schedulers, serve_the_longest_sequence_they_say_they_can) {
  SchedulerOptions options{.num_gpu_blocks = 20};
  const int64_t most = GetParam().make(options)->capacity_tokens();
  for (const int64_t input : {int64_t{1}, most / 2, most}) {
    LinearTimes times({});
    ListedRequests source({{.id = 0, .input_tokens = input, .output_tokens = most - input + 1, .prefix_blocks = {}}});
    RecordedRun run;
    const SimulationTotals totals = simulate(
        {.replicas = {{.scheduler = std::string(GetParam().name), .options = options, .times = &times}}}, source, run);
    EXPECT_EQ(totals.completed, 1) << input;
  }
}

INSTANTIATE_TEST_SUITE_P(kinds, Schedulers, testing::ValuesIn(scheduler_kinds().begin(), scheduler_kinds().end()),
                         [](const auto& kind) { return std::string(kind.param.name); });

TEST(StaticBatch, sequences_that_have_ended_still_decode_but_give_no_tokens) {
  LinearTimes times({});
  ListedRequests source({{.id = 0, .input_tokens = 10, .output_tokens = 2, .prefix_blocks = {}},
                         {.id = 1, .input_tokens = 10, .output_tokens = 10, .prefix_blocks = {}}});
  RecordedRun run;
  simulate({.replicas = {{.scheduler = "static", .options = {.num_gpu_blocks = 100}, .times = &times}}}, source, run);
  int64_t tokens = 0, idle = 0;
  for (const StepRecord& step : run.steps) {
    tokens += step.decode_tokens * step.repeats;
    idle += step.idle_decodes * step.repeats;
  }
  EXPECT_EQ(tokens, 1 + 9);
  EXPECT_EQ(idle, 8);
}

TEST(SchedulerList, suggests_the_nearest_name) {
  EXPECT_EQ(scheduler_kind("sarathi").name, "sarathi");
  try {
    scheduler_kind("sarati");
    FAIL() << "an unknown name is an error";
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().suggestion, "sarathi");
  }
}

}  // namespace foretoken::schedulers_list_test
