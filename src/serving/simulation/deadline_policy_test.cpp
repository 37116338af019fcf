// QueuePolicy::deadline: least slack first, and what cannot meet its goal is shed.
#include <gtest/gtest.h>

#include "serving/test_support.h"

namespace foretoken::deadline_policy_test {

// One job at a time, each a prompt of one step of exactly 10 ms.
class OneJobTimes final : public StepTimes {
 public:
  Estimate step_seconds(const StepBatch& /*batch*/) override { return exactly(0.01); }
};
constexpr Picoseconds job = one_second / 100;

SimulationConfig one_server(StepTimes& times, QueuePolicy policy, std::vector<Picoseconds> goals) {
  SimulationConfig config;
  config.replicas = {{.options = {.max_num_batched_tokens = 256,
                                  .max_num_seqs = 1,
                                  .num_gpu_blocks = 200,
                                  .policy = policy,
                                  .ttft_goals = std::move(goals),
                                  .enable_prefix_caching = false,
                                  .async_scheduling = false},
                      .times = &times}};
  return config;
}

std::vector<RequestRecord> run(const SimulationConfig& config, const std::vector<Request>& requests) {
  ListedRequests source(requests);
  RecordedRun told;
  simulate(config, source, told);
  return told.sorted();
}

int64_t met(const std::vector<RequestRecord>& records, const std::vector<Picoseconds>& goals) {
  int64_t count = 0;
  for (const RequestRecord& record : records) {
    const bool completed = record.outcome == RequestOutcome::completed;
    if (completed && record.ttft() <= goals[static_cast<size_t>(record.priority)]) ++count;
  }
  return count;
}

// Jobs of equal length that arrive between two of them: the earliest deadline first meets the most (J. R. Jackson,
// "Scheduling a production line to minimize maximum tardiness", 1955, for the feasible ones).
TEST(DeadlinePolicy, meets_at_least_as_many_goals_as_first_come_first_served) {
  OneJobTimes times;
  int64_t better = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    RandomStream random(seed, "jobs");
    const std::vector<Picoseconds> goals = {job * static_cast<int64_t>(1 + random.below(4)),
                                            job * static_cast<int64_t>(2 + random.below(10)),
                                            job * static_cast<int64_t>(5 + random.below(20))};
    std::vector<Request> requests;
    Picoseconds now = 0;
    for (int64_t i = 0; i < 60; ++i) {
      now += job * static_cast<int64_t>(random.below(3));
      requests.push_back({.id = i,
                          .arrival = now,
                          .input_tokens = 100,
                          .output_tokens = 1,
                          .priority = static_cast<int32_t>(random.below(3)),
                          .prefix_blocks = {}});
    }
    const int64_t in_order = met(run(one_server(times, QueuePolicy::fcfs, {}), requests), goals);
    const int64_t by_deadline = met(run(one_server(times, QueuePolicy::deadline, goals), requests), goals);
    EXPECT_GE(by_deadline, in_order);
    better += by_deadline > in_order ? 1 : 0;
  }
  EXPECT_GT(better, 50);
}

TEST(DeadlinePolicy, sheds_only_what_could_not_meet_its_goal_and_serves_the_rest_in_time) {
  OneJobTimes times;
  const std::vector<Picoseconds> goals = {3 * job};
  std::vector<Request> requests;
  for (int64_t i = 0; i < 10; ++i) {
    requests.push_back({.id = i, .input_tokens = 100, .output_tokens = 1, .prefix_blocks = {}});
  }
  const std::vector<RequestRecord> records = run(one_server(times, QueuePolicy::deadline, goals), requests);
  int64_t shed = 0;
  for (const RequestRecord& record : records) {
    if (record.outcome == RequestOutcome::completed) {
      EXPECT_LE(record.ttft(), goals[0]);
    } else {
      EXPECT_EQ(record.rejection, Rejection::shed);
      ++shed;
    }
  }
  EXPECT_EQ(shed, 7);
}

TEST(DeadlinePolicy, with_distant_goals_and_equal_prompts_is_first_come_first_served) {
  LinearTimes times({});
  std::vector<Request> requests = random_requests(1, 200, 30, 200, 50);
  for (Request& request : requests) request.input_tokens = 100;
  const std::vector<RequestRecord> plain = run(one_server(times, QueuePolicy::fcfs, {}), requests);
  const std::vector<RequestRecord> by_deadline =
      run(one_server(times, QueuePolicy::deadline, {3600 * one_second}), requests);
  ASSERT_EQ(plain.size(), by_deadline.size());
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_EQ(plain[i].last_token, by_deadline[i].last_token);
}

TEST(DeadlinePolicy, equal_decode_steps_advanced_at_once_change_nothing) {
  LinearTimes times({});
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SimulationConfig config = one_server(times, QueuePolicy::deadline, {one_second, 4 * one_second});
    config.replicas[0].options.max_num_seqs = 6;
    config.replicas[0].options.async_scheduling = seed % 2 == 0;
    std::vector<Request> requests = random_requests(seed, 100, 25, 300, 60);
    for (Request& request : requests) request.priority = static_cast<int32_t>(request.id % 2);
    const std::vector<RequestRecord> at_once = run(config, requests);
    config.repeat_decodes = false;
    const std::vector<RequestRecord> alone = run(config, requests);
    ASSERT_EQ(at_once.size(), alone.size());
    for (size_t i = 0; i < alone.size(); ++i) {
      EXPECT_EQ(at_once[i].rejection, alone[i].rejection);
      EXPECT_EQ(at_once[i].last_token, alone[i].last_token);
    }
  }
}

}  // namespace foretoken::deadline_policy_test
