// Cold starts, capacity in closed form, regions, predicted waits.
#include <cmath>

#include <gtest/gtest.h>

#include "serving/fleet/admission.h"
#include "serving/fleet/cold_start.h"
#include "serving/fleet/lifecycle.h"
#include "serving/fleet/regions.h"
#include "serving/fleet/replica_capacity.h"
#include "serving/test_support.h"

namespace foretoken::fleet_parts_test {

TEST(ColdStart, adds_its_parts_and_the_slower_of_storage_and_links_loads) {
  const ColdStart settings{.provisioning = Seconds(10), .storage = BytesPerSecond(2e9), .engine_start = Seconds(5)};
  EXPECT_DOUBLE_EQ(cold_start_time(settings, Bytes(20e9), 1, BytesPerSecond(0)).value(), 25);
  EXPECT_DOUBLE_EQ(cold_start_time(settings, Bytes(20e9), 4, BytesPerSecond(50e9)).value(), 55);
  EXPECT_DOUBLE_EQ(cold_start_time(settings, Bytes(20e9), 1, BytesPerSecond(1e9)).value(), 35);
}

TEST(ReplicaCapacity, is_what_a_saturated_engine_serves) {
  for (const double output : {1.0, 20.0, 200.0}) {
    SCOPED_TRACE(output);
    LinearTimes times({});
    const SchedulerOptions options{.max_num_batched_tokens = 1024, .max_num_seqs = 32, .num_gpu_blocks = 4000};
    const double closed = requests_per_second(times, options, {.input_tokens = 400, .output_tokens = output});
    std::vector<Request> requests;
    for (int64_t i = 0; i < 2000; ++i) {
      requests.push_back(
          {.id = i, .input_tokens = 400, .output_tokens = static_cast<int64_t>(output), .prefix_blocks = {}});
    }
    SimulationConfig config;
    config.replicas = {{.options = options, .times = &times}};
    ListedRequests source(requests);
    RecordedRun told;
    const double simulated = 2000 / to_seconds(simulate(config, source, told).end).value();
    EXPECT_NEAR(closed, simulated, 0.1 * simulated);
  }
}

TEST(ReplicaCapacity, falls_with_a_tighter_goal_and_with_longer_requests) {
  LinearTimes times({});
  const SchedulerOptions options{.max_num_batched_tokens = 1024, .max_num_seqs = 256, .num_gpu_blocks = 40000};
  const auto capacity = [&](double input, double output, double tpot) {
    return requests_per_second(times, options, {.input_tokens = input, .output_tokens = output, .tpot_s = tpot});
  };
  EXPECT_LT(capacity(400, 100, 0.012), capacity(400, 100, 0.02));
  EXPECT_LE(capacity(400, 100, 0.02), capacity(400, 100, 0.2));
  EXPECT_LT(capacity(800, 100, 0.02), capacity(400, 100, 0.02));
  EXPECT_LT(capacity(400, 200, 0.02), capacity(400, 100, 0.02));
  EXPECT_GT(capacity(400, 100, 1e-9), 0) << "one sequence runs whatever the goal";
}

TEST(ReplicaCapacity, of_separate_workers_is_that_of_their_part_alone) {
  LinearTimes times({});
  const SchedulerOptions options{.max_num_batched_tokens = 1024, .max_num_seqs = 32, .num_gpu_blocks = 4000};
  const auto capacity = [&](ReplicaWork work) {
    return requests_per_second(times, options, {.input_tokens = 400, .output_tokens = 100, .work = work});
  };
  EXPECT_GT(capacity(ReplicaWork::prompts), capacity(ReplicaWork::all));
  EXPECT_GT(capacity(ReplicaWork::decodes), capacity(ReplicaWork::all));
  // 32 sequences in steps of 10 ms, 10 us a token and 10 ns a token of context, 99 of them each.
  EXPECT_NEAR(capacity(ReplicaWork::decodes), 32 / (99 * (0.01 + 32e-5 + 32 * 450e-8)), 1e-9);
}

TEST(ReplicaCapacity, of_ranks_in_lock_step_whose_prompts_come_alone_is_that_of_one_prompt_after_the_other) {
  LinearTimes times({});
  const SchedulerOptions options{
      .max_num_batched_tokens = 1024, .max_num_seqs = 32, .num_gpu_blocks = 4000, .lock_step_ranks = 4};
  const auto capacity = [&](ReplicaWork work, bool alone) {
    return requests_per_second(times, options,
                               {.input_tokens = 400, .output_tokens = 100, .work = work, .prompts_alone = alone});
  };
  const PromptChunk prompt{.new_tokens = 400};
  const double seconds = times.step_seconds({.prompts = {&prompt, 1}}).value;
  EXPECT_DOUBLE_EQ(capacity(ReplicaWork::prompts, true), 1 / (4 * seconds));
  EXPECT_LT(capacity(ReplicaWork::all, true), capacity(ReplicaWork::all, false));
  EXPECT_EQ(capacity(ReplicaWork::decodes, true), capacity(ReplicaWork::decodes, false));
}

TEST(ReplicaCapacity, counts_a_batch_of_each_stage_and_all_tokens_of_a_verification) {
  LinearTimes times({});
  const SchedulerOptions one{.max_num_batched_tokens = 1024, .max_num_seqs = 32, .num_gpu_blocks = 4000};
  SchedulerOptions two = one;
  two.max_num_seqs *= 2;
  two.num_gpu_blocks *= 2;
  two.pipeline_stages = 2;
  const CapacityQuestion question{.input_tokens = 400, .output_tokens = 100, .tpot_s = 0.012};
  EXPECT_DOUBLE_EQ(requests_per_second(times, two, question), 2 * requests_per_second(times, one, question));
  // 32 sequences of 450 tokens in the mean, 2 tokens out of each step, 3 drafts to verify: 99 tokens in 49.5 steps.
  const CapacityQuestion drafts{.input_tokens = 400,
                                .output_tokens = 100,
                                .work = ReplicaWork::decodes,
                                .tokens_per_decode = 2,
                                .verified_tokens = 3};
  const StepBatch step{.decodes = 32,
                       .decode_context_tokens = 32 * 450,
                       .longest_decode_context = 450,
                       .drafted_tokens = 96,
                       .prompts = {}};
  EXPECT_DOUBLE_EQ(requests_per_second(times, one, drafts), 32 / (49.5 * times.step_seconds(step).value));
  SchedulerOptions few = one;
  few.speculation.most_sequences = 8;
  CapacityQuestion plain = drafts;
  plain.tokens_per_decode = 1;
  plain.verified_tokens = 0;
  EXPECT_DOUBLE_EQ(requests_per_second(times, few, drafts), requests_per_second(times, one, plain))
      << "nothing is drafted beyond so many sequences";
}

TEST(Regions, requests_come_from_each_in_proportion_and_at_its_hours) {
  const std::vector<Region> regions = {{.name = "a", .share = 3}, {.name = "b", .share = 1, .shift_s = 50}};
  std::vector<Request> requests = random_requests(1, 40'000, 40, 10, 10);
  const std::unique_ptr<RequestSource> source =
      with_regions(std::make_unique<ListedRequests>(requests), regions, {.swing = 0.9, .period_s = 100}, 1);
  int64_t from_b = 0, by_day[2] = {0, 0};
  while (source->next_arrival()) {
    const Request request = source->next();
    if (request.region == 0) continue;
    ++from_b;
    // The first half of a's day is the second of b's.
    const double part = to_seconds(request.arrival).value() / 100;
    ++by_day[part - std::floor(part) < 0.5 ? 0 : 1];
  }
  EXPECT_NEAR(static_cast<double>(from_b), 10'000 * 1.3, 3000);
  EXPECT_GT(by_day[1], 3 * by_day[0]);
}

TEST(ServiceRate, predicts_the_wait_of_a_steady_server_exactly) {
  ServiceRate rate;
  EXPECT_EQ(rate.wait(0), 0);
  EXPECT_EQ(rate.wait(3), std::nullopt) << "nothing has ended";
  for (int64_t i = 0; i < 300; ++i) rate.ended(i * one_second);
  EXPECT_EQ(rate.wait(5), 5 * one_second);
  for (int64_t i = 0; i < 256; ++i) rate.ended((300 + 2 * i) * one_second);
  EXPECT_EQ(rate.wait(5), 10 * one_second) << "only the last ones count";
}

TEST(Lifecycle, counts_the_time_of_devices_from_start_to_stop) {
  Lifecycle lifecycle({{.devices = 4}, {.devices = 2}});
  lifecycle.change(0, ReplicaState::serving, 0);
  lifecycle.change(1, ReplicaState::starting, 2 * one_second);
  lifecycle.change(1, ReplicaState::serving, 5 * one_second);
  lifecycle.change(1, ReplicaState::draining, 7 * one_second);
  lifecycle.change(1, ReplicaState::off, 8 * one_second);
  EXPECT_DOUBLE_EQ(lifecycle.gpu_seconds(10 * one_second), 4 * 10 + 2 * 6);
  ASSERT_EQ(lifecycle.sizes().size(), 5u);
  EXPECT_EQ(lifecycle.sizes()[1].held, 2);
  EXPECT_EQ(lifecycle.sizes()[1].serving, 1);
  EXPECT_EQ(lifecycle.sizes()[2].serving, 2);
  EXPECT_EQ(lifecycle.sizes().back().held, 1);
}

}  // namespace foretoken::fleet_parts_test
