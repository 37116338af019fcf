// Several outputs of one prompt.
#include "serving/stages/sample_groups.h"

#include <map>

#include <gtest/gtest.h>

#include "serving/load/prompt_blocks.h"
#include "serving/simulation/routed_replicas.h"
#include "serving/test_support.h"

namespace foretoken::sample_groups_test {

// Where each sample ran, and what was computed.
class Watched final : public RunObserver {
 public:
  bool watches(int64_t) const override { return true; }
  void request_ended(const RequestRecord& record) override { requests[record.id] = record; }
  void step_ran(const StepRecord& step) override { prefill_tokens += step.prefill_tokens; }
  void request_stepped(const RequestStep& own, const StepRecord& step) override {
    replicas[own.request].insert({step.replica, 1});
  }
  void token_gaps(Picoseconds gap, int64_t count) override {
    gaps += count;
    gap_time += gap * count;
  }
  int64_t gaps = 0;
  Picoseconds gap_time = 0;
  std::map<int64_t, RequestRecord> requests;
  std::map<int64_t, std::map<int32_t, int>> replicas;
  int64_t prefill_tokens = 0;
};

SimulationConfig config(StepTimes& times, SampleSettings samples, int64_t replicas = 1, bool prefix_caching = true) {
  const SchedulerOptions options{.max_num_seqs = 64, .num_gpu_blocks = 4000, .enable_prefix_caching = prefix_caching};
  return {.replicas = std::vector<ReplicaConfig>(static_cast<size_t>(replicas), {.options = options, .times = &times}),
          .samples = samples};
}

TEST(SampleGroups, one_sample_is_the_plain_run) {
  LinearTimes times({});
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const std::vector<Request> requests = random_requests(seed, 60, 30, 400, 80);
    ListedRequests plain_source(requests), inner(requests);
    RecordedRun plain, grouped;
    simulate(config(times, {}, 2), plain_source, plain);
    SampleGroups groups({.count = 1}, 0, inner, grouped);
    const SimulationConfig two = config(times, {}, 2);
    RoutedReplicas engines(two, groups, groups);
    groups.feed(engines);
    RequestArrivals arrivals(inner, groups);
    EventLoop loop;
    engines.join(loop);
    loop.add(arrivals);
    loop.run();
    const std::vector<RequestRecord> before = plain.sorted(), after = grouped.sorted();
    ASSERT_EQ(before.size(), after.size());
    for (size_t i = 0; i < before.size(); ++i) {
      EXPECT_EQ(before[i].first_token, after[i].first_token);
      EXPECT_EQ(before[i].last_token, after[i].last_token);
      EXPECT_EQ(before[i].output_tokens, after[i].output_tokens);
    }
    EXPECT_EQ(plain.gaps, grouped.gaps);
  }
}

TEST(SampleGroups, all_outputs_come_out_on_one_replica_and_the_request_ends_with_the_last) {
  LinearTimes times({});
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const std::vector<Request> requests = random_requests(seed, 60, 20, 400, 80);
    ListedRequests source(requests);
    Watched seen;
    const SimulationTotals totals = simulate(config(times, {.count = 4}, 3), source, seen);
    EXPECT_EQ(totals.completed, 60);
    ASSERT_EQ(seen.requests.size(), 60U);
    for (const Request& request : requests) {
      const RequestRecord& record = seen.requests.at(request.id);
      EXPECT_EQ(record.output_tokens, 4 * request.output_tokens);
      EXPECT_EQ(record.input_tokens, request.input_tokens);
      EXPECT_EQ(record.arrival, request.arrival);
      EXPECT_LE(record.first_token, record.last_token);
      EXPECT_EQ(seen.replicas.at(request.id).size(), 1U) << "samples share a cache";
    }
  }
}

TEST(SampleGroups, time_per_output_token_is_that_of_one_output) {
  LinearTimes times({});
  const Request request{.id = 0, .input_tokens = 100, .output_tokens = 50};
  ListedRequests source({request});
  Watched seen;
  simulate(config(times, {.count = 4}), source, seen);
  const RequestRecord& record = seen.requests.at(0);
  ASSERT_EQ(seen.gaps, 4 * 49);
  EXPECT_EQ(record.tpot(), (seen.gap_time + seen.gaps / 2) / seen.gaps) << "no shorter than a step";
  EXPECT_TRUE(record.has_gaps());
}

TEST(SampleGroups, every_scheduler_gives_all_tokens_of_all_samples) {
  LinearTimes times({});
  for (const std::string& scheduler : scheduler_names()) {
    const std::vector<Request> requests = random_requests(4, 40, 50, 300, 60);
    ListedRequests source(requests);
    RecordedRun seen;
    SimulationConfig tight = config(times, {.count = 3});
    tight.replicas.front().scheduler = scheduler;
    tight.replicas.front().options.num_gpu_blocks = 100;
    tight.replicas.front().options.max_num_seqs = 8;
    simulate(tight, source, seen);
    ASSERT_EQ(seen.requests.size(), 40U) << scheduler;
    for (const RequestRecord& record : seen.requests) {
      EXPECT_EQ(record.output_tokens, 3 * requests[static_cast<size_t>(record.id)].output_tokens) << scheduler;
    }
  }
}

TEST(SampleGroups, the_prompt_is_computed_once_but_for_its_last_block) {
  LinearTimes times({});
  for (const int64_t prompt : {5, 16, 64, 100, 1000}) {
    const auto computed = [&](bool prefix_caching) {
      ListedRequests source({{.id = 7, .arrival = 0, .input_tokens = prompt, .output_tokens = 3}});
      Watched seen;
      simulate(config(times, {.count = 5}, 1, prefix_caching), source, seen);
      return seen.prefill_tokens;
    };
    const int64_t shared = (prompt - 1) / 16 * 16;  // full blocks, the last token apart
    EXPECT_EQ(computed(true), prompt + 4 * (prompt - shared)) << prompt;
    EXPECT_EQ(computed(false), 5 * prompt);
  }
}

TEST(SampleGroups, lengths_spread_around_those_of_the_request) {
  LinearTimes times({});
  std::vector<Request> requests = random_requests(3, 200, 50, 50, 5);
  for (Request& request : requests) request.output_tokens = 100;
  ListedRequests source(requests);
  Watched seen;
  simulate(config(times, {.count = 4, .spread = 0.5}), source, seen);
  int64_t tokens = 0;
  for (const auto& [id, record] : seen.requests) {
    EXPECT_GE(record.output_tokens, 4 * 50);
    EXPECT_LE(record.output_tokens, 4 * 150);
    tokens += record.output_tokens;
  }
  EXPECT_NEAR(static_cast<double>(tokens) / (200 * 4 * 100), 1, 0.05);
}

TEST(SampleGroups, a_request_that_does_not_fit_fails_once) {
  LinearTimes times({});
  ListedRequests source({{.id = 0, .arrival = 0, .input_tokens = 100'000, .output_tokens = 1},
                         {.id = 1, .arrival = 0, .input_tokens = 10, .output_tokens = 1}});
  RecordedRun seen;
  const SimulationTotals totals = simulate(config(times, {.count = 3}), source, seen);
  EXPECT_EQ(totals.rejected, 1);
  EXPECT_EQ(totals.completed, 1);
  ASSERT_EQ(seen.requests.size(), 2U);
  EXPECT_EQ(seen.sorted()[0].rejection, Rejection::beyond_kv_cache);
}

TEST(PromptBlocks, numbers_of_a_whole_prompt_are_its_own_behind_those_it_had) {
  Request first{.id = 1, .input_tokens = 100, .prefix_block_tokens = 16, .prefix_blocks = {4, 5}};
  Request second{.id = 2, .input_tokens = 100, .prefix_block_tokens = 16, .prefix_blocks = {4, 5}};
  describe_whole_prompt(first);
  describe_whole_prompt(second);
  ASSERT_EQ(first.prefix_blocks.size(), 6U);
  EXPECT_EQ(first.prefix_blocks[1], 5);
  for (size_t i = 2; i < 6; ++i) {
    EXPECT_LT(first.prefix_blocks[i], 0);
    EXPECT_NE(first.prefix_blocks[i], second.prefix_blocks[i]);
  }
}

}  // namespace foretoken::sample_groups_test
