#include "serving/simulation/simulation.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/error.h"
#include "serving/test_support.h"

namespace foretoken::simulation_test {

// One second a step, whatever is in it.
LinearTimes one_second_steps() {
  return LinearTimes({.step = 1, .token = 0, .context_token = 0});
}

Request request_at(int64_t id, double arrival, int64_t output) {
  return {.id = id,
          .arrival = to_picoseconds(Seconds(arrival)),
          .input_tokens = 10,
          .output_tokens = output,
          .prefix_blocks = {}};
}

std::vector<RequestRecord> serve(std::vector<Request> requests, const SchedulerOptions& options,
                                 const std::string& scheduler = "vllm") {
  LinearTimes times = one_second_steps();
  ListedRequests source(std::move(requests));
  RecordedRun run;
  simulate({.replicas = {{.scheduler = scheduler, .options = options, .times = &times}}}, source, run);
  return run.sorted();
}

TEST(Simulation, scheduled_ahead_a_request_waits_for_the_rest_of_a_step_and_all_of_the_next) {
  const auto records = serve({request_at(0, 0, 20), request_at(1, 4.5, 2)}, {.num_gpu_blocks = 100});
  EXPECT_EQ(records[1].queued, 5 * one_second);
  EXPECT_EQ(records[1].scheduled, 6 * one_second);
  EXPECT_EQ(records[1].first_token, 7 * one_second);
}

TEST(Simulation, step_by_step_it_waits_for_the_rest_of_the_step) {
  const auto records =
      serve({request_at(0, 0, 20), request_at(1, 4.5, 2)}, {.num_gpu_blocks = 100, .async_scheduling = false});
  EXPECT_EQ(records[1].queued, 5 * one_second);
  EXPECT_EQ(records[1].scheduled, 5 * one_second);
  EXPECT_EQ(records[1].first_token, 6 * one_second);
}

TEST(Simulation, scheduled_ahead_the_place_of_an_ended_request_is_filled_one_step_late) {
  const SchedulerOptions one{.max_num_seqs = 1, .num_gpu_blocks = 100};
  const auto records = serve({request_at(0, 0, 3), request_at(1, 0.5, 1)}, one);
  EXPECT_EQ(records[0].last_token, 3 * one_second);
  EXPECT_EQ(records[1].first_token, 4 * one_second);
}

TEST(Simulation, an_idle_engine_starts_at_once) {
  const auto records = serve({request_at(0, 0, 1), request_at(1, 7.25, 1)}, {.num_gpu_blocks = 100});
  EXPECT_EQ(records[1].queued, records[1].arrival);
  EXPECT_EQ(records[1].first_token - records[1].arrival, one_second);
}

TEST(Simulation, what_arrives_at_one_instant_is_read_together) {
  const auto records = serve({request_at(0, 1, 1), request_at(1, 1, 1)}, {.num_gpu_blocks = 100});
  EXPECT_EQ(records[0].first_token, 2 * one_second);
  EXPECT_EQ(records[1].first_token, 2 * one_second);
}

TEST(Simulation, pipeline_stages_work_on_different_steps) {
  const SchedulerOptions two{.max_num_batched_tokens = 10, .num_gpu_blocks = 100, .pipeline_stages = 2};
  const auto records = serve({request_at(0, 0, 1), request_at(1, 0, 1)}, two);
  EXPECT_EQ(records[0].first_token, one_second);
  EXPECT_EQ(records[1].first_token, 3 * one_second / 2);
}

TEST(Simulation, chunks_of_a_prompt_are_in_different_pipeline_stages_at_once) {
  const SchedulerOptions two{.max_num_batched_tokens = 5, .num_gpu_blocks = 100, .pipeline_stages = 2};
  for (const char* scheduler : {"vllm", "sglang"}) {
    EXPECT_EQ(serve({request_at(0, 0, 1)}, two, scheduler)[0].first_token, 3 * one_second / 2) << scheduler;
  }
  EXPECT_EQ(serve({request_at(0, 0, 1)}, two, "trtllm")[0].first_token, 2 * one_second);
}

TEST(Simulation, a_free_pipeline_stage_takes_a_request_on_arrival_where_the_scheduler_looks_then) {
  const SchedulerOptions two{.num_gpu_blocks = 200, .pipeline_stages = 2};
  const std::vector<Request> requests{request_at(0, 0, 1), request_at(1, 0.125, 1)};
  EXPECT_EQ(serve(requests, two, "vidur_vllm")[1].first_token, 3 * one_second / 2) << "behind the first in stage one";
  EXPECT_EQ(serve(requests, two, "vllm")[1].first_token, 2 * one_second) << "read when the first has ended";
}

// Half of a step in the second of three stages.
class UnevenStages final : public StepTimes {
 public:
  Estimate step_seconds(const StepBatch& batch) override { return exactly(static_cast<double>(batch.new_tokens())); }
  void stage_seconds(const StepBatch& batch, std::span<Estimate> stages) override {
    const double all = step_seconds(batch).value;
    stages[0] = stages[2] = exactly(all / 4);
    stages[1] = exactly(all / 2);
  }
};

TEST(Simulation, a_step_enters_a_pipeline_stage_when_the_one_before_has_left_it) {
  UnevenStages times;
  std::vector<Request> requests{request_at(0, 0, 1), request_at(1, 0, 1)};
  requests[0].input_tokens = 8;
  requests[1].input_tokens = 4;
  const SchedulerOptions three{.max_num_batched_tokens = 8, .num_gpu_blocks = 100, .pipeline_stages = 3};
  const auto records =
      simulated({.replicas = {{.scheduler = "vidur_vllm", .options = three, .times = &times}}}, requests).told.sorted();
  EXPECT_EQ(records[0].first_token, 8 * one_second);
  // Stages: 2 to 3, then 6 to 8 behind the first in the middle, then 8 to 9.
  EXPECT_EQ(records[1].first_token, 9 * one_second);
}

TEST(Simulation, output_beyond_the_models_length_is_cut) {
  const auto records = serve({request_at(0, 0, 100)}, {.max_model_len = 30, .num_gpu_blocks = 100});
  EXPECT_EQ(records[0].output_tokens, 20);
}

TEST(Simulation, cost_grows_with_decisions_not_with_tokens) {
  LinearTimes times({});
  for (const int64_t output : {100, 100'000}) {
    ListedRequests source({request_at(0, 0, output), request_at(1, 0, output)});
    RecordedRun run;
    times.asked = 0;
    const SimulationTotals totals =
        simulate({.replicas = {{.options = {.num_gpu_blocks = 20'000}, .times = &times}}}, source, run);
    EXPECT_EQ(totals.steps, output);
    EXPECT_LE(totals.decisions, 3);
    EXPECT_LE(times.asked, 30);
  }
}

TEST(Simulation, bounds_of_the_step_times_bound_the_run) {
  class Wide final : public StepTimes {
    Estimate step_seconds(const StepBatch&) override { return {.value = 1, .low = 0.5, .high = 2}; }
  };
  Wide times;
  for (const auto& [bound, end] : {std::pair(StepBound::low, 2.5), {StepBound::value, 5.0}, {StepBound::high, 10.0}}) {
    ListedRequests source({request_at(0, 0, 5)});
    RecordedRun run;
    const SimulationTotals totals =
        simulate({.replicas = {{.options = {.num_gpu_blocks = 100}, .times = &times}}, .bound = bound}, source, run);
    EXPECT_EQ(totals.end, to_picoseconds(Seconds(end)));
  }
}

TEST(Simulation, replicas_may_differ) {
  LinearTimes fast({.step = 0.1, .token = 0, .context_token = 0}), slow = one_second_steps();
  ListedRequests source({request_at(0, 0, 1), request_at(1, 0, 1)});
  RecordedRun run;
  simulate({.replicas = {{.options = {.num_gpu_blocks = 100}, .times = &fast},
                         {.scheduler = "sglang", .options = {.num_gpu_blocks = 100}, .times = &slow}}},
           source, run);
  EXPECT_EQ(run.sorted()[0].last_token, one_second / 10);
  EXPECT_EQ(run.sorted()[1].last_token, one_second);
}

// Blocks of a prefix that nobody holds are free until it is hit.
TEST(Simulation, sglang_counts_the_prefix_that_a_request_hits_as_taken) {
  Request first = request_at(0, 0, 1), beside = request_at(1, 5, 20), hit = request_at(2, 7, 790);
  first.input_tokens = 640;
  hit.input_tokens = 800;
  for (int64_t block = 1; block <= 40; ++block) first.prefix_blocks.push_back(block);
  hit.prefix_blocks = first.prefix_blocks;
  first.prefix_block_tokens = hit.prefix_block_tokens = 16;
  const auto records = serve({first, beside, hit}, {.num_gpu_blocks = 100, .block_size = 16}, "sglang");
  EXPECT_EQ(records[2].cached_tokens, 640);
  EXPECT_GE(records[2].scheduled, records[1].last_token) << "prefix and what is needed beside it do not fit earlier";
}

// A request comes when the one before it has ended.
class OneAfterTheOther final : public RequestSource {
 public:
  std::optional<Picoseconds> next_arrival() override { return ready_; }
  Request next() override {
    ready_.reset();
    Request request = request_at(sent_++, 0, 2);
    request.arrival = last_;
    return request;
  }
  void ended(int64_t id, Picoseconds when) override {
    EXPECT_EQ(id, sent_ - 1);
    last_ = when;
    if (sent_ < 5) ready_ = when;
  }

 private:
  std::optional<Picoseconds> ready_ = 0;
  Picoseconds last_ = 0;
  int64_t sent_ = 0;
};

TEST(Simulation, a_source_may_wait_for_the_end_of_its_requests) {
  LinearTimes times = one_second_steps();
  OneAfterTheOther source;
  RecordedRun run;
  const SimulationTotals totals =
      simulate({.replicas = {{.options = {.num_gpu_blocks = 100}, .times = &times}}}, source, run);
  EXPECT_EQ(totals.completed, 5);
  EXPECT_EQ(totals.end, 10 * one_second);
}

TEST(Simulation, arrivals_that_go_back_in_time_are_an_error) {
  EXPECT_THROW(serve({request_at(0, 5, 1), request_at(1, 4, 1)}, {.num_gpu_blocks = 100}), InputError);
}

TEST(Simulation, times_that_bend_with_the_context_never_end_a_step_in_the_past) {
  struct BentTimes : StepTimes {
    Estimate step_seconds(const StepBatch& batch) override {
      const auto context = static_cast<double>(batch.decode_context_tokens);
      const double seconds = 0.01 + 3e-6 * std::sqrt(context);
      return {.value = seconds, .low = seconds, .high = seconds};
    }
  };
  for (const bool ahead : {false, true}) {
    BentTimes times;
    std::vector<Request> requests;
    for (int64_t i = 0; i < 300; ++i) requests.push_back(request_at(i, 1.37 * static_cast<double>(i), 400));
    ListedRequests source(std::move(requests));
    RecordedRun run;
    simulate({.replicas = {{.options = {.num_gpu_blocks = 1000, .async_scheduling = ahead}, .times = &times}}}, source,
             run);
    EXPECT_EQ(run.sorted().size(), 300U);
  }
}

// Steps of 10 ms.
std::vector<RequestRecord> read_every_ten_steps(std::vector<Request> requests, bool repeat_decodes) {
  LinearTimes times({.step = 0.01, .token = 0, .context_token = 0});
  ListedRequests source(std::move(requests));
  RecordedRun run;
  simulate({.replicas = {{.options = {.num_gpu_blocks = 100, .async_scheduling = false},
                          .times = &times,
                          .receive_interval = 10}},
            .repeat_decodes = repeat_decodes},
           source, run);
  return run.sorted();
}

TEST(Simulation, an_engine_that_reads_every_so_many_steps_has_arrivals_wait_for_that) {
  for (const bool repeat_decodes : {true, false}) {
    const std::vector<RequestRecord> records =
        read_every_ten_steps({request_at(0, 0.0, 100), request_at(1, 0.123, 1), request_at(2, 0.9, 1)}, repeat_decodes);
    // Read after the prompt (0.01), then after 10 decodes (0.11), and again (0.21); its own step of 10 ms reads too.
    EXPECT_NEAR(to_seconds(records[1].queued).value(), 0.21, 1e-9);
    EXPECT_NEAR(to_seconds(records[1].first_token).value(), 0.22, 1e-9);
    EXPECT_NEAR(to_seconds(records[2].queued).value(), 0.92, 1e-9);
  }
}

TEST(Simulation, what_arrives_in_the_last_step_before_a_reading_is_read_then) {
  for (const bool repeat_decodes : {true, false}) {
    const std::vector<RequestRecord> records =
        read_every_ten_steps({request_at(0, 0.0, 100), request_at(1, 0.205, 1)}, repeat_decodes);
    EXPECT_NEAR(to_seconds(records[1].queued).value(), 0.21, 1e-9) << repeat_decodes;
  }
}

// Without gaps, most tokens of a sequence are not looked at one by one: what comes of a request is the same.
TEST(Simulation, a_request_ends_as_it_does_where_gaps_between_tokens_are_asked_for) {
  std::vector<Request> requests = random_requests(3, 400, 30, 900, 120);
  for (size_t i = 0; i < requests.size(); i += 7) requests[i].thinking_tokens = requests[i].output_tokens / 2;
  const SchedulerOptions tight{.max_num_batched_tokens = 512, .max_num_seqs = 40, .num_gpu_blocks = 700};
  const FrontCosts slow_pieces{.latency = Seconds(0.001), .request = Seconds(1e-4), .piece = Seconds(2e-5)};
  for (const char* scheduler : {"vllm", "sglang", "trtllm"}) {
    for (const bool ahead : {true, false}) {
      for (const int64_t ranks : {1, 2}) {
        for (const bool repeat_decodes : {true, false}) {
          const auto records = [&](bool token_gaps) {
            LinearTimes times({});
            SchedulerOptions options = tight;
            options.async_scheduling = ahead;
            options.lock_step_ranks = ranks;
            return simulated({.replicas =
                                  {{.scheduler = scheduler, .options = options, .times = &times, .front = slow_pieces}},
                              .repeat_decodes = repeat_decodes,
                              .token_gaps = token_gaps},
                             requests)
                .told.sorted();
          };
          const std::vector<RequestRecord> asked = records(true), plain = records(false);
          ASSERT_EQ(asked.size(), requests.size());
          ASSERT_EQ(plain.size(), requests.size());
          for (size_t i = 0; i < asked.size(); ++i) {
            EXPECT_EQ(asked[i].scheduled, plain[i].scheduled) << scheduler << ahead << ranks << " " << i;
            EXPECT_EQ(asked[i].first_token, plain[i].first_token) << scheduler << ahead << ranks << " " << i;
            EXPECT_EQ(asked[i].answered, plain[i].answered) << scheduler << ahead << ranks << " " << i;
            EXPECT_EQ(asked[i].last_token, plain[i].last_token) << scheduler << ahead << ranks << " " << i;
            EXPECT_EQ(asked[i].preemptions, plain[i].preemptions) << scheduler << ahead << ranks << " " << i;
          }
        }
      }
    }
  }
}

}  // namespace foretoken::simulation_test
