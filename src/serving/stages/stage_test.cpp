// Stages before the engines, alone and in a run.
#include "serving/stages/stage.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "serving/load/closed_loop.h"
#include "serving/load/lengths.h"
#include "serving/load/synthetic.h"
#include "serving/stages/stage_list.h"
#include "serving/test_support.h"

namespace foretoken::stage_test {

struct StagedRun {
  RecordedRun seen;
  SimulationTotals totals;
};

StagedRun run_with(const std::vector<StageConfig>& stages, RequestSource& source) {
  LinearTimes times({});
  StagedRun run;
  const SchedulerOptions options{.max_num_seqs = 16, .num_gpu_blocks = 400};
  run.totals = simulate({.replicas = {{.options = options, .times = &times}}, .stages = stages}, source, run.seen);
  return run;
}

StagedRun run_with(const std::vector<StageConfig>& stages, std::vector<Request> requests) {
  ListedRequests source(std::move(requests));
  return run_with(stages, source);
}

TEST(Stages, one_that_takes_no_time_changes_nothing) {
  StageList stages;
  stages.add("first", 1, 1, fixed_stage(0));
  stages.add("second", 3, 4, fixed_stage(0));
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<Request> requests = random_requests(seed, 80, 40, 500, 100);
    const StagedRun plain = run_with({}, requests), staged = run_with(stages.configs(), requests);
    const std::vector<RequestRecord> before = plain.seen.sorted(), after = staged.seen.sorted();
    ASSERT_EQ(before.size(), after.size());
    for (size_t i = 0; i < before.size(); ++i) {
      EXPECT_EQ(before[i].first_token, after[i].first_token) << seed;
      EXPECT_EQ(before[i].last_token, after[i].last_token) << seed;
      EXPECT_EQ(before[i].arrival, after[i].arrival) << seed;
    }
    EXPECT_EQ(plain.totals.steps, staged.totals.steps);
  }
}

TEST(Stages, without_load_add_their_service_to_the_first_token) {
  StageList stages;
  stages.add("search", 1, 8, fixed_stage(0.25));
  stages.add("rerank", 1, 8, fixed_stage(0.5));
  std::vector<Request> requests;
  for (int64_t i = 0; i < 5; ++i) {
    requests.push_back({.id = i, .arrival = i * 20 * one_second, .input_tokens = 100, .output_tokens = 10});
  }
  const StagedRun plain = run_with({}, requests), staged = run_with(stages.configs(), requests);
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(staged.seen.sorted()[i].ttft(), plain.seen.sorted()[i].ttft() + one_second / 4 * 3);
  }
}

TEST(Stages, every_request_passes_each_once_and_servers_are_never_busier_than_they_can_be) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    RandomStream random(seed, "stages");
    StageList stages;
    const auto count = static_cast<int64_t>(1 + random.below(3));
    std::vector<int64_t> most;
    for (int64_t i = 0; i < count; ++i) {
      most.push_back(static_cast<int64_t>(1 + random.below(5)));
      stages.add("stage", static_cast<int64_t>(1 + random.below(3)), most.back(), fixed_stage(random.uniform(0, 0.05)));
    }
    const StagedRun run = run_with(stages.configs(), random_requests(seed, 100, 50, 300, 50));
    EXPECT_EQ(run.totals.completed + run.totals.rejected, 100);
    ASSERT_EQ(run.totals.stages.size(), static_cast<size_t>(count));
    for (size_t i = 0; i < most.size(); ++i) {
      const StageUse& use = run.totals.stages[i];
      EXPECT_EQ(use.wait.count(), 100);
      EXPECT_EQ(use.service.count(), 100);
      EXPECT_LE(use.mean_batch(), static_cast<double>(most[i]));
      EXPECT_LE(use.utilisation(to_seconds(run.totals.end).value()), 1 + 1e-9);
    }
  }
}

TEST(Stages, more_servers_never_make_a_request_wait_longer) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const std::vector<Request> requests = random_requests(seed, 200, 100, 50, 5);
    double before = 1e9;
    for (const int64_t servers : {1, 2, 4, 8}) {
      StageList stages;
      stages.add("search", servers, 1, fixed_stage(0.02));
      const StagedRun run = run_with(stages.configs(), requests);
      EXPECT_LE(run.totals.stages.front().wait.mean_seconds(), before) << servers;
      before = run.totals.stages.front().wait.mean_seconds();
    }
  }
}

TEST(Stages, a_single_server_waits_as_in_m_d_1) {
  constexpr double load = 0.7, service = 0.01;
  StageList stages;
  stages.add("search", 1, 1, fixed_stage(service));
  const StagedRun run = run_with(stages.configs(), random_requests(5, 50'000, load / service, 1, 1));
  EXPECT_NEAR(run.totals.stages.front().wait.mean_seconds() / (load * service / (2 * (1 - load))), 1, 0.05);
}

TEST(Stages, a_closed_loop_counts_those_in_them_as_in_flight) {
  StageList stages;
  stages.add("search", 1, 1, fixed_stage(0.1));
  const auto load = closed_loop(synthetic_load({.count = 30}, uniform_lengths({50, 50}, {5, 5}, 1), {}, 1), 2);
  const StagedRun run = run_with(stages.configs(), *load);
  ASSERT_EQ(run.totals.completed, 30);
  const std::vector<RequestRecord> records = run.seen.sorted();
  for (const RequestRecord& one : records) {
    const auto in_flight = std::count_if(records.begin(), records.end(), [&](const RequestRecord& other) {
      return other.arrival <= one.arrival && other.last_token > one.arrival;
    });
    EXPECT_LE(in_flight, 2);
  }
  EXPECT_LE(run.totals.stages.front().wait.mean_seconds(), 0.1);
}

TEST(Stages, a_run_at_the_upper_bound_of_its_times_is_slower) {
  class Uncertain final : public StageTimes {
   public:
    Estimate batch_seconds(std::span<const Request>) override { return {.value = 0.1, .low = 0.05, .high = 0.2}; }
  };
  StageList stages;
  stages.add("search", 1, 1, std::make_unique<Uncertain>());
  LinearTimes times({});
  std::vector<Picoseconds> first_tokens;
  for (const StepBound bound : {StepBound::low, StepBound::value, StepBound::high}) {
    ListedRequests source({{.id = 0, .arrival = 0, .input_tokens = 10, .output_tokens = 1}});
    RecordedRun seen;
    simulate({.replicas = {{.options = {.num_gpu_blocks = 400}, .times = &times}},
              .bound = bound,
              .stages = stages.configs()},
             source, seen);
    first_tokens.push_back(seen.requests.front().first_token);
  }
  EXPECT_EQ(first_tokens[1] - first_tokens[0], one_second / 20);
  EXPECT_EQ(first_tokens[2] - first_tokens[1], one_second / 10);
}

}  // namespace foretoken::stage_test
