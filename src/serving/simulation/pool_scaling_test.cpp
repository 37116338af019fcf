// Autoscaling of separate prefill and decode workers.
#include <set>

#include <gtest/gtest.h>

#include "serving/fleet/replica_capacity.h"
#include "serving/test_support.h"

namespace foretoken::pool_scaling_test {

// So many places for workers of each kind.
SimulationConfig pools_of(size_t prefill, size_t decode, StepTimes& times) {
  SimulationConfig config{.router = "least_outstanding"};
  const SchedulerOptions options{.max_num_batched_tokens = 512, .max_num_seqs = 16, .num_gpu_blocks = 400};
  config.replicas.assign(prefill + decode, {.options = options, .times = &times});
  config.disaggregation = {
      .prefill_replicas = prefill,
      .decode_router = "least_outstanding",
      .kv_bytes_per_token = 1e5,
      .ports = std::vector<KvPort>(prefill + decode, {.bandwidth = BytesPerSecond(1e9), .latency = Seconds(1e-4)})};
  FleetConfig fleet;
  fleet.members.assign(prefill + decode, {.devices = 1, .cold_start = one_second});
  const auto capacity_of = [&times, options](ReplicaWork work) {
    return [&times, options, work](double input, double output) {
      return requests_per_second(times, options, {.input_tokens = input, .output_tokens = output, .work = work});
    };
  };
  fleet.pools = {{.members = static_cast<int64_t>(prefill), .capacity = capacity_of(ReplicaWork::prompts)},
                 {.members = static_cast<int64_t>(decode), .capacity = capacity_of(ReplicaWork::decodes)}};
  fleet.scaling = {.interval_s = 0.5, .target = 4, .stabilization_s = 1};
  config.fleet = fleet;
  return config;
}

TEST(PoolScaling, every_request_is_served_while_workers_of_both_kinds_come_and_go) {
  LinearTimes times({});
  for (const std::string kind : {"reactive", "predictive", "seasonal", "planner"}) {
    int64_t starts = 0, stops = 0;
    for (uint64_t seed = 0; seed < 20; ++seed) {
      SCOPED_TRACE(testing::Message() << kind << " " << seed);
      SimulationConfig config = pools_of(4, 4, times);
      config.fleet->scaling.kind = kind;
      config.fleet->scaling.stabilization_s = 0.5;
      config.disaggregation->first_token = seed % 2 == 0 ? FirstToken::decode : FirstToken::transfer;
      // A burst, and what comes after it.
      std::vector<Request> requests = random_requests(seed, 150, 40, 300, 60);
      const Picoseconds end = requests.back().arrival;
      for (Request later : random_requests(seed + 1000, 50, 3, 300, 60)) {
        later.id += 150;
        later.arrival += end;
        requests.push_back(later);
      }
      const SimulatedRun result = simulated(config, requests);
      EXPECT_EQ(result.totals.completed, 200);
      std::set<int64_t> ids;
      for (const RequestRecord& record : result.told.requests) ids.insert(record.id);
      EXPECT_EQ(ids.size(), 200u);
      for (const FleetSize& size : result.totals.fleet.sizes) {
        EXPECT_GE(size.serving, 2) << "one of each kind";
        EXPECT_LE(size.held, 8);
      }
      starts += result.totals.fleet.starts;
      stops += result.totals.fleet.stops;
    }
    EXPECT_GT(starts, 10) << kind;
    EXPECT_GT(stops, 10) << kind;
  }
}

TEST(PoolScaling, pools_that_may_not_change_are_the_plain_run) {
  LinearTimes times({});
  SimulationConfig config = pools_of(2, 2, times);
  config.fleet->scaling.kind = "planner";
  config.fleet->scaling.least = 2;
  for (FleetPool& pool : config.fleet->pools) pool.at_start = 2;
  const std::vector<Request> requests = random_requests(3, 200, 30, 300, 60);
  const SimulatedRun fixed = simulated(config, requests);
  config.fleet.reset();
  const SimulatedRun plain = simulated(config, requests);
  ASSERT_EQ(fixed.told.requests.size(), plain.told.requests.size());
  for (size_t i = 0; i < plain.told.requests.size(); ++i) {
    EXPECT_EQ(fixed.told.requests[i].id, plain.told.requests[i].id);
    EXPECT_EQ(fixed.told.requests[i].last_token, plain.told.requests[i].last_token);
  }
}

TEST(PoolScaling, long_prompts_want_prefill_workers_and_long_outputs_decode_workers) {
  LinearTimes times({.step = 0.01, .token = 1e-4, .context_token = 1e-8});
  const auto most_of = [&](int64_t input, int64_t output) {
    SimulationConfig config = pools_of(8, 8, times);
    config.fleet->scaling.kind = "planner";
    std::vector<Request> requests = random_requests(3, 300, 30, 1, 1);
    for (Request& request : requests) {
      request.input_tokens = input;
      request.output_tokens = output;
    }
    const SimulatedRun result = simulated(config, requests);
    std::set<int32_t> prefill, decode;
    for (const StepRecord& step : result.told.steps) (step.replica < 8 ? prefill : decode).insert(step.replica);
    return std::pair(prefill.size(), decode.size());
  };
  const auto [prefill_of_long_prompts, decode_of_long_prompts] = most_of(400, 4);
  const auto [prefill_of_long_outputs, decode_of_long_outputs] = most_of(20, 100);
  EXPECT_GT(prefill_of_long_prompts, prefill_of_long_outputs);
  EXPECT_LT(decode_of_long_prompts, decode_of_long_outputs);
}

}  // namespace foretoken::pool_scaling_test
