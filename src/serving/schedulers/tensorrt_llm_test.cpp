#include <gtest/gtest.h>

#include "serving/test_support.h"

namespace foretoken::tensorrt_llm_test {

// When the first token of each of some requests came, in steps of 10 ms: the first request arrives alone, the others
// while it decodes.
std::vector<int64_t> first_tokens(int64_t others, int64_t timeout, double ratio) {
  std::vector<Request> requests = {{.id = 0, .input_tokens = 100, .output_tokens = 200, .prefix_blocks = {}}};
  for (int64_t id = 1; id <= others; ++id) {
    requests.push_back(
        {.id = id, .arrival = one_second / 100, .input_tokens = 100, .output_tokens = 2, .prefix_blocks = {}});
  }
  LinearTimes times({.step = 0.01, .token = 0, .context_token = 0});
  SchedulerOptions options{.max_num_batched_tokens = 1000, .num_gpu_blocks = 1000};
  options.async_scheduling = false;
  options.batch_wait_timeout_iters = timeout;
  options.batch_wait_max_tokens_ratio = ratio;
  ListedRequests source(std::move(requests));
  RecordedRun run;
  simulate({.replicas = {{.scheduler = "trtllm", .options = options, .times = &times}}}, source, run);
  std::vector<int64_t> steps;
  for (const RequestRecord& record : run.sorted()) steps.push_back(record.first_token / (one_second / 100));
  return steps;
}

TEST(TensorrtLlmBatchWaiting, holds_prompts_back_beside_running_sequences_until_the_timeout) {
  EXPECT_EQ(first_tokens(1, 0, 0.9), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(first_tokens(1, 20, 0.9), (std::vector<int64_t>{1, 22}));
}

TEST(TensorrtLlmBatchWaiting, ends_when_the_step_would_be_full_enough) {
  // Eight prompts and one decode hold 801 of 1000 tokens.
  EXPECT_EQ(first_tokens(8, 20, 0.8), (std::vector<int64_t>{1, 2, 2, 2, 2, 2, 2, 2, 2}));
  EXPECT_EQ(first_tokens(8, 20, 0.81).back(), 22);
}

TEST(TensorrtLlmChunks, without_chunks_a_prompt_longer_than_a_step_is_refused_and_outputs_may_be_longer) {
  for (const bool chunks : {true, false}) {
    LinearTimes times({});
    ListedRequests source({{.id = 0, .input_tokens = 101, .output_tokens = 5, .prefix_blocks = {}},
                           {.id = 1, .input_tokens = 100, .output_tokens = 300, .prefix_blocks = {}}});
    RecordedRun run;
    SchedulerOptions options{.max_num_batched_tokens = 100, .num_gpu_blocks = 1000};
    options.enable_chunked_prefill = chunks;
    simulate({.replicas = {{.scheduler = "trtllm", .options = options, .times = &times}}}, source, run);
    const std::vector<RequestRecord> records = run.sorted();
    EXPECT_EQ(records[0].rejection, chunks ? Rejection::none : Rejection::beyond_step);
    EXPECT_EQ(records[1].output_tokens, 300);
  }
}

TEST(TensorrtLlmChunks, a_replica_with_chunks_takes_the_prompts_that_another_without_refuses) {
  LinearTimes times({});
  std::vector<Request> requests;
  for (int64_t id = 0; id < 4; ++id) {
    requests.push_back({.id = id, .input_tokens = 101, .output_tokens = 5, .prefix_blocks = {}});
  }
  ListedRequests source(std::move(requests));
  RecordedRun run;
  ReplicaConfig cuts{
      .scheduler = "trtllm", .options = {.max_num_batched_tokens = 100, .num_gpu_blocks = 1000}, .times = &times};
  ReplicaConfig refuses = cuts;
  refuses.options.enable_chunked_prefill = false;
  simulate({.replicas = {refuses, cuts}}, source, run);
  for (const RequestRecord& record : run.sorted()) {
    EXPECT_EQ(record.rejection, Rejection::none) << record.id;
    EXPECT_EQ(record.output_tokens, 5) << record.id;
    EXPECT_EQ(record.replica, 1) << record.id;
  }
}

TEST(TensorrtLlmStatic, a_batch_has_as_many_requests_as_may_run_whatever_fits_in_one_step) {
  for (const bool chunks : {true, false}) {
    std::vector<Request> requests;
    for (int64_t id = 0; id < 5; ++id) {
      requests.push_back({.id = id, .input_tokens = 60, .output_tokens = 20, .prefix_blocks = {}});
    }
    LinearTimes times({});
    ListedRequests source(requests);
    RecordedRun run;
    simulate({.replicas = {{.scheduler = "trtllm_static",
                            .options = {.max_num_batched_tokens = 100,
                                        .max_num_seqs = 4,
                                        .num_gpu_blocks = 100,
                                        .enable_chunked_prefill = chunks},
                            .times = &times}}},
             source, run);
    const std::vector<RequestRecord> records = run.sorted();
    for (size_t i = 0; i < 4; ++i) EXPECT_LT(records[i].scheduled, records[0].last_token) << i;
    EXPECT_GE(records[4].scheduled, records[3].last_token) << "nothing joins a batch that runs";
    for (const StepRecord& step : run.steps) EXPECT_LE(step.prefill_tokens + step.decode_tokens, 100);
  }
}

// With so many stages, each with a batch of at most four requests.
RecordedRun run_stages(const char* scheduler, int64_t stages, bool chunks) {
  std::vector<Request> requests;
  for (int64_t id = 0; id < 20; ++id) {
    requests.push_back({.id = id, .input_tokens = 60, .output_tokens = 20 + id, .prefix_blocks = {}});
  }
  LinearTimes times({});
  ListedRequests source(requests);
  RecordedRun run;
  simulate({.replicas = {{.scheduler = scheduler,
                          .options = {.max_num_batched_tokens = 1000,
                                      .max_num_seqs = 4 * stages,
                                      .num_gpu_blocks = 1000,
                                      .enable_chunked_prefill = chunks,
                                      .pipeline_stages = stages},
                          .times = &times}}},
           source, run);
  return run;
}

TEST(TensorrtLlmStages, the_batch_of_a_stage_has_no_more_requests_than_it_may) {
  for (const char* scheduler : {"trtllm", "trtllm_max_utilization", "trtllm_static"}) {
    for (const int64_t stages : {1, 2, 4}) {
      const RecordedRun run = run_stages(scheduler, stages, stages != 4);
      EXPECT_EQ(run.requests.size(), 20U);
      int64_t most = 0, most_running = 0;
      for (const StepRecord& step : run.steps) {
        most = std::max(most, step.prompts + step.decode_tokens);
        most_running = std::max(most_running, step.running);
      }
      EXPECT_EQ(most, 4) << scheduler << ' ' << stages;
      EXPECT_EQ(most_running, 4 * stages) << scheduler << ' ' << stages;
    }
  }
}

}  // namespace foretoken::tensorrt_llm_test
