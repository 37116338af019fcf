#include "serving/online/online_run.h"

#include <map>

#include <gtest/gtest.h>

#include "serving/online/engine_metrics.h"
#include "serving/online/scaled_clock.h"
#include "serving/results/observer_list.h"
#include "serving/test_support.h"

namespace foretoken::online_run_test {

// When each token came out.
class TokenTimes final : public RunObserver {
 public:
  bool watches(int64_t /*request*/) const override { return true; }
  void request_stepped(const RequestStep& own, const StepRecord& step) override {
    for (int64_t i = 0; i < own.yields; ++i) times[own.request].push_back(step.end);
  }
  std::map<int64_t, std::vector<Picoseconds>> times;
};

SimulationConfig two_engines(LinearTimes& times, const std::string& scheduler) {
  const SchedulerOptions options{.max_num_batched_tokens = 512, .max_num_seqs = 16, .num_gpu_blocks = 120};
  const ReplicaConfig replica{.scheduler = scheduler, .options = options, .times = &times};
  return {.replicas = {replica, replica}, .router = "least_outstanding", .repeat_decodes = false};
}

TEST(OnlineRun, requests_of_one_body_go_to_one_server_and_enter_its_engine_together) {
  LinearTimes times({});
  for (const std::string router : {"round_robin", "data_parallel"}) {
    SCOPED_TRACE(router);
    SimulationConfig config = two_engines(times, "vllm");
    config.router = router;
    for (ReplicaConfig& replica : config.replicas) replica.front = {.request = Seconds(0.5)};
    RecordedRun told;
    OnlineRun run(config, told);
    for (int64_t id = 0; id < 4; ++id) run.submit({.id = id, .input_tokens = 10, .output_tokens = 2}, 0, 7);
    run.submit({.id = 4, .input_tokens = 10, .output_tokens = 2}, 0);
    while (run.next_event() != end_of_time) run.advance(run.next_event() + 1);
    const std::vector<RequestRecord> records = told.sorted();
    ASSERT_EQ(records.size(), 5U);
    std::map<int32_t, std::vector<Picoseconds>> scheduled;  // of the body, by replica
    for (size_t i = 0; i < 4; ++i) scheduled[records[i].replica].push_back(records[i].scheduled);
    EXPECT_EQ(scheduled.size(), router == "data_parallel" ? 2U : 1U) << "ranks of one server share a body";
    for (const auto& [replica, starts] : scheduled) {
      for (const Picoseconds start : starts) EXPECT_EQ(start, starts.front());
    }
    if (router == "round_robin") {
      EXPECT_NE(records[4].replica, records[0].replica);
    }
  }
}

TEST(OnlineRun, a_client_may_leave_while_the_end_of_its_answer_is_sent) {
  LinearTimes times({});
  SimulationConfig config = two_engines(times, "sglang");
  for (ReplicaConfig& replica : config.replicas) replica.front = {.piece = Seconds(10)};
  RecordedRun told;
  OnlineRun run(config, told);
  run.submit({.id = 0, .input_tokens = 10, .output_tokens = 1}, 0);
  run.submit({.id = 1, .input_tokens = 10, .output_tokens = 1}, 0);
  EXPECT_TRUE(run.cancel(0, 5 * one_second)) << "the engine is done with it, the client has nothing yet";
  EXPECT_FALSE(run.cancel(0, 5 * one_second)) << "it is not here any more";
  while (run.next_event() != end_of_time) run.advance(run.next_event() + 1);
  ASSERT_EQ(told.requests.size(), 1U) << "nobody is told of the other";
  EXPECT_EQ(told.requests.front().id, 1);
}

TEST(OnlineRun, gives_what_the_simulation_of_the_same_arrivals_gives_however_often_time_is_told) {
  for (const SchedulerKind& kind : scheduler_kinds()) {
    SCOPED_TRACE(kind.name);
    LinearTimes times({});
    const SimulationConfig config = two_engines(times, std::string(kind.name));
    std::vector<Request> requests = random_requests(7, 120, 40, 300, 60);
    const SimulatedRun simulated_run = simulated(config, requests);

    RecordedRun told;
    TokenTimes tokens;
    ObserverList observers({&told, &tokens});
    OnlineRun run(config, observers);
    RandomStream pace(3, "pace");
    Picoseconds now = 0;
    for (Request& request : requests) {
      while (pace.below(3) > 0) {  // somewhere on the way to the next arrival
        now += static_cast<Picoseconds>(pace.below(static_cast<uint64_t>(request.arrival - now) + 1));
        run.advance(now);
      }
      now = request.arrival;
      run.submit(std::move(request), now);
    }
    while (run.next_event() != end_of_time) run.advance(run.next_event() + 1);

    const std::vector<RequestRecord> online = told.sorted(), expected = simulated_run.told.sorted();
    ASSERT_EQ(online.size(), expected.size());
    for (size_t i = 0; i < online.size(); ++i) {
      EXPECT_EQ(online[i].replica, expected[i].replica);
      EXPECT_EQ(online[i].scheduled, expected[i].scheduled);
      EXPECT_EQ(online[i].first_token, expected[i].first_token);
      EXPECT_EQ(online[i].last_token, expected[i].last_token);
      const std::vector<Picoseconds>& own = tokens.times[online[i].id];
      ASSERT_EQ(static_cast<int64_t>(own.size()), online[i].output_tokens);
      EXPECT_EQ(own.front(), online[i].first_token);
      EXPECT_EQ(own.back(), online[i].last_token);
    }
  }
}

TEST(OnlineRun, what_is_due_at_this_very_moment_waits_for_requests_that_arrive_at_it) {
  LinearTimes times({});
  TokenTimes tokens;
  OnlineRun run(two_engines(times, "vllm"), tokens);
  run.submit({.id = 0, .input_tokens = 10, .output_tokens = 1}, 5);
  const Picoseconds due = run.next_event();
  run.advance(due);
  EXPECT_EQ(run.next_event(), due);
  run.advance(due + 1);
  EXPECT_GT(run.next_event(), due);
}

TEST(OnlineRun, clients_that_leave_take_nothing_with_them_and_the_rest_is_served) {
  for (const SchedulerKind& kind : scheduler_kinds()) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      SCOPED_TRACE(testing::Message() << kind.name << ", seed " << seed);
      LinearTimes times({});
      SimulationConfig config = two_engines(times, std::string(kind.name));
      for (ReplicaConfig& replica : config.replicas) {
        replica.options.pipeline_stages = seed % 3 == 0 ? 2 : 1;
        replica.options.lock_step_ranks = seed % 5 == 0 ? 2 : 1;
        if (seed % 2 == 0) replica.front = {.latency = Seconds(0.02)};
      }
      RecordedRun told;
      TokenTimes tokens;
      ObserverList observers({&told, &tokens});
      OnlineRun run(config, observers);
      RandomStream random(seed, "leaving");
      std::vector<int64_t> left;
      std::map<int64_t, size_t> tokens_when_left;
      for (Request& request : random_requests(seed, 100, 60, 300, 80)) {
        const int64_t id = request.id;
        const Picoseconds now = request.arrival;
        run.submit(std::move(request), now);
        const auto leaver = static_cast<int64_t>(random.below(static_cast<uint64_t>(id) + 1));
        if (random.below(2) == 0 || !run.cancel(leaver, now)) continue;
        left.push_back(leaver);
        tokens_when_left[leaver] = tokens.times[leaver].size();
        EXPECT_FALSE(run.cancel(leaver, now)) << "it is not here any more";
      }
      while (run.next_event() != end_of_time) run.advance(run.next_event() + 1);

      EXPECT_GT(left.size(), 10U);
      EXPECT_EQ(told.requests.size() + left.size(), 100U);
      for (const auto& [id, count] : tokens_when_left) EXPECT_EQ(tokens.times[id].size(), count);
      for (const Replica& replica : run.replicas()) replica.check_ended();  // no request, no block
    }
  }
}

TEST(OnlineRun, prefixes_are_forgotten_only_when_nothing_runs) {
  LinearTimes times({});
  RecordedRun told;
  SimulationConfig config = two_engines(times, "vllm");
  config.replicas.resize(1);
  OnlineRun run(config, told);
  const auto serve = [&](int64_t id) {
    Request request{.id = id, .input_tokens = 40, .output_tokens = 2, .prefix_block_tokens = 16};
    request.prefix_blocks = {1, 2};
    const Picoseconds now = static_cast<Picoseconds>(id) * one_second;
    run.submit(std::move(request), now);
    EXPECT_FALSE(run.forget_prefixes(now));
    while (run.next_event() != end_of_time) run.advance(run.next_event() + 1);
  };
  serve(1);
  serve(2);
  EXPECT_TRUE(run.forget_prefixes(3 * one_second - 1));
  serve(3);
  EXPECT_EQ(told.requests[0].cached_tokens, 0);
  EXPECT_EQ(told.requests[1].cached_tokens, 32);
  EXPECT_EQ(told.requests[2].cached_tokens, 0);
}

TEST(ScaledClock, is_past_a_moment_when_it_says_so_at_any_scale) {
  const WallTime start = std::chrono::steady_clock::now();
  for (const double scale : {0.1, 1.0, 10.0, 1000.0}) {
    const ScaledClock clock(start, scale);
    EXPECT_EQ(clock.simulated(start), 0);
    EXPECT_NEAR(to_seconds(clock.simulated(start + std::chrono::seconds(2))).value(), 2 * scale, 1e-9 * scale);
    for (const Picoseconds when : {Picoseconds{1}, one_second / 3, 77 * one_second}) {
      EXPECT_GE(clock.simulated(clock.wall(when)), when);
      EXPECT_LE(clock.simulated(clock.wall(when)), when + static_cast<Picoseconds>(3000 * scale));
    }
  }
}

TEST(EngineMetrics, counts_every_request_token_and_gap_once) {
  LinearTimes times({});
  const SimulationConfig config = two_engines(times, "vllm");
  EngineMetrics metrics(2, 1000);
  OnlineRun run(config, metrics);
  int64_t input = 0, output = 0, gaps = 0;
  for (Request& request : random_requests(1, 50, 20, 200, 50)) {
    input += request.input_tokens;
    output += request.output_tokens;
    gaps += request.output_tokens - 1;
    metrics.submitted(request, request.output_tokens, request.id % 2 == 0 ? FinishReason::stop : FinishReason::length);
    const Picoseconds now = request.arrival;
    run.submit(std::move(request), now);
  }
  while (run.next_event() != end_of_time) run.advance(run.next_event() + 1);

  int64_t prompt_tokens = 0, generation_tokens = 0, stops = 0, lengths = 0, first_tokens = 0, token_gaps = 0;
  for (const EngineCounts& counts : metrics.engines()) {
    prompt_tokens += counts.prompt_tokens;
    generation_tokens += counts.generation_tokens;
    stops += counts.ended[static_cast<size_t>(FinishReason::stop)];
    lengths += counts.ended[static_cast<size_t>(FinishReason::length)];
    first_tokens += counts.ttft.count();
    token_gaps += counts.itl.count();
    EXPECT_EQ(counts.e2el.count(), counts.ttft.count());
    EXPECT_NEAR(counts.e2el.sum(), counts.queue.sum() + counts.prefill.sum() + counts.decode.sum(), 1e-6);
  }
  EXPECT_EQ(prompt_tokens, input);
  EXPECT_EQ(generation_tokens, output);
  EXPECT_EQ(stops, 25);
  EXPECT_EQ(lengths, 25);
  EXPECT_EQ(first_tokens, 50);
  EXPECT_EQ(token_gaps, gaps);
}

TEST(Histogram, puts_a_value_on_a_bound_below_it) {
  constexpr double bounds[] = {1, 2};
  Histogram histogram(bounds);
  for (const double value : {0.5, 1.0, 1.5, 2.0, 7.0}) histogram.add(value);
  EXPECT_EQ(histogram.counts(), (std::vector<int64_t>{2, 2, 1}));
  EXPECT_EQ(histogram.count(), 5);
  EXPECT_DOUBLE_EQ(histogram.sum(), 12);
}

}  // namespace foretoken::online_run_test
