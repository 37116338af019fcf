// Laws of runs whose requests go through adapters.
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "serving/lora/adapter_requests.h"
#include "serving/lora/lora_counts.h"
#include "serving/test_support.h"

namespace foretoken::lora_simulation_test {

// Steps that take longer for each adapter in them.
class AdapterTimes final : public StepTimes {
 public:
  explicit AdapterTimes(double seconds_each) : seconds_each_(seconds_each) {}
  Estimate step_seconds(const StepBatch& batch) override {
    return exactly(plain_.step_seconds(batch).value + seconds_each_ * static_cast<double>(batch.adapters));
  }

 private:
  LinearTimes plain_{{}};
  double seconds_each_;
};

std::vector<Request> adapter_requests(uint64_t seed, int64_t count, int64_t adapters, double rate = 50) {
  auto source = with_adapters(std::make_unique<ListedRequests>(random_requests(seed, count, rate, 300, 60)),
                              {.adapters = adapters, .zipf_exponent = 1, .share = 0.9}, seed);
  std::vector<Request> requests;
  while (source->next_arrival()) requests.push_back(source->next());
  return requests;
}

ReplicaConfig replica(StepTimes& times, int64_t max_loras, bool async = true) {
  return {.options = {.max_num_batched_tokens = 512,
                      .max_num_seqs = 24,
                      .num_gpu_blocks = 300,
                      .async_scheduling = async,
                      .max_loras = max_loras},
          .times = &times,
          .adapters = {.device_slots = static_cast<size_t>(max_loras),
                       .host_slots = static_cast<size_t>(2 * max_loras),
                       .from_host = Seconds(2e-3),
                       .from_disk = Seconds(2e-2)}};
}

struct Outcome {
  SimulationTotals totals;
  RecordedRun run;
};

Outcome outcome(const ReplicaConfig& replica, const std::vector<Request>& requests, bool repeat_decodes = true) {
  Outcome result;
  SimulationConfig config{.repeat_decodes = repeat_decodes};
  config.replicas = {replica};
  ListedRequests source(requests);
  result.totals = simulate(config, source, result.run);
  return result;
}

TEST(LoraSimulation, every_request_gets_its_tokens_and_no_step_more_adapters_than_there_are_slots) {
  int64_t preemptions = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    const std::vector<Request> requests = adapter_requests(seed, 80, 12);
    const auto slots = static_cast<int64_t>(1 + seed % 5);
    AdapterTimes times(1e-4);
    const Outcome result = outcome(replica(times, slots, seed % 2 == 0), requests);
    ASSERT_EQ(result.totals.completed, 80);
    for (const RequestRecord& record : result.run.requests) {
      EXPECT_EQ(record.output_tokens, requests[static_cast<size_t>(record.id)].output_tokens);
    }
    int64_t most = 0;
    for (const StepRecord& step : result.run.steps) most = std::max(most, step.adapters);
    EXPECT_EQ(most, slots) << "the load is meant to fill them";
    preemptions += result.totals.preemptions;
  }
  EXPECT_GT(preemptions, 0) << "some runs are meant to be tight";
}

TEST(LoraSimulation, adapters_that_cost_nothing_give_the_plain_run) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const std::vector<Request> requests = adapter_requests(seed, 60, 8);
    AdapterTimes free(0);
    ReplicaConfig with = replica(free, 8);
    with.adapters.from_host = with.adapters.from_disk = Seconds(0);
    ReplicaConfig without = replica(free, 8);
    without.adapters = {};
    without.options.max_loras = 0;
    const std::vector<RequestRecord> a = outcome(with, requests).run.sorted();
    const std::vector<RequestRecord> b = outcome(without, requests).run.sorted();
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(a[i].first_token, b[i].first_token);
      EXPECT_EQ(a[i].last_token, b[i].last_token);
    }
  }
}

TEST(LoraSimulation, runs_of_equal_decodes_give_the_same_answers_as_single_steps) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const std::vector<Request> requests = adapter_requests(seed, 60, 8, 10);
    AdapterTimes times(1e-4);
    const Outcome fast = outcome(replica(times, 3), requests), slow = outcome(replica(times, 3), requests, false);
    EXPECT_LT(fast.totals.decisions, slow.totals.decisions);
    const std::vector<RequestRecord> a = fast.run.sorted(), b = slow.run.sorted();
    for (size_t i = 0; i < a.size(); ++i) {
      EXPECT_NEAR(static_cast<double>(a[i].last_token), static_cast<double>(b[i].last_token), 1e6) << i;
    }
  }
}

TEST(LoraSimulation, a_request_whose_adapter_has_no_slot_lets_others_pass) {
  AdapterTimes times(0);
  std::vector<Request> requests;
  for (int64_t i = 0; i < 3; ++i) {
    requests.push_back({.id = i, .arrival = i, .input_tokens = 16, .output_tokens = 20, .adapter = i == 1 ? 1 : 0});
  }
  const std::vector<RequestRecord> ended = outcome(replica(times, 1), requests).run.sorted();
  EXPECT_LT(ended[2].first_token, ended[0].last_token);
  EXPECT_GT(ended[1].scheduled, ended[2].last_token - 1);
}

TEST(LoraSimulation, prompts_of_different_adapters_share_no_cache) {
  AdapterTimes times(0);
  std::vector<Request> requests;
  for (int64_t i = 0; i < 3; ++i) {
    requests.push_back({.id = i,
                        .arrival = i * one_second,
                        .input_tokens = 64,
                        .output_tokens = 2,
                        .adapter = i == 1 ? 1 : 0,
                        .prefix_block_tokens = 16,
                        .prefix_blocks = {1, 2, 3, 4}});
  }
  const std::vector<RequestRecord> ended = outcome(replica(times, 2), requests).run.sorted();
  EXPECT_EQ(ended[1].cached_tokens, 0);
  EXPECT_EQ(ended[2].cached_tokens, 48);
}

TEST(LoraSimulation, time_spent_loading_is_what_the_loads_take) {
  const std::vector<Request> requests = adapter_requests(3, 80, 12);
  AdapterTimes times(0);
  LoraCounts counts;
  SimulationConfig config;
  config.replicas = {replica(times, 2)};
  ListedRequests source(requests);
  simulate(config, source, counts);
  EXPECT_GE(counts.loads.from_host, 12);
  EXPECT_EQ(counts.loads.time, to_picoseconds(Seconds(2e-3 * static_cast<double>(counts.loads.from_host) +
                                                      2e-2 * static_cast<double>(counts.loads.from_disk))));
  EXPECT_GT(counts.mean_adapters(), 1);
  EXPECT_LE(counts.mean_adapters(), 2);
}

TEST(AdapterRequests, popularity_follows_the_exponent_and_turns_of_a_conversation_agree) {
  std::vector<Request> plain;
  for (int64_t i = 0; i < 20'000; ++i) plain.push_back({.id = i, .input_tokens = 1, .output_tokens = 1});
  for (int64_t i = 0; i < 100; ++i)
    plain.push_back({.id = i, .input_tokens = 1, .output_tokens = 1, .session = i / 10});
  auto source =
      with_adapters(std::make_unique<ListedRequests>(plain), {.adapters = 10, .zipf_exponent = 1, .share = 0.5}, 1);
  std::map<int32_t, int64_t> counts;
  std::map<int64_t, std::set<int32_t>> of_session;
  while (source->next_arrival()) {
    const Request request = source->next();
    if (request.session < 0) {
      ++counts[request.adapter];
    } else {
      of_session[request.session].insert(request.adapter);
    }
  }
  EXPECT_NEAR(static_cast<double>(counts[-1]), 10'000, 300);
  EXPECT_NEAR(static_cast<double>(counts[0]) / static_cast<double>(counts[9]), 10, 2);
  for (const auto& [session, adapters] : of_session) EXPECT_EQ(adapters.size(), 1u) << session;
}

}  // namespace foretoken::lora_simulation_test
