#include "serving/simulation/separate_pools.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "serving/test_support.h"

namespace foretoken::separate_pools_test {

constexpr double bytes_per_token = 1e5;

struct Pools {
  size_t prefill = 1, decode = 1;
  std::string scheduler = "vllm";
  SchedulerOptions prefill_options{.num_gpu_blocks = 4000, .async_scheduling = false};
  SchedulerOptions decode_options{.num_gpu_blocks = 4000, .async_scheduling = false};
  KvPort port{.bandwidth = BytesPerSecond(1e9), .latency = Seconds(1e-4)};
  FirstToken first_token = FirstToken::decode;
  int64_t overlapped_layers = 0;
  bool repeat_decodes = true;
};

struct Outcome {
  RecordedRun run;
  SimulationTotals totals;
};

SimulationConfig config_of(const Pools& pools, StepTimes& times) {
  SimulationConfig config{.router = "least_outstanding", .repeat_decodes = pools.repeat_decodes};
  config.replicas.assign(pools.prefill,
                         {.scheduler = pools.scheduler, .options = pools.prefill_options, .times = &times});
  config.replicas.insert(config.replicas.end(), pools.decode,
                         {.scheduler = pools.scheduler, .options = pools.decode_options, .times = &times});
  config.disaggregation = {.prefill_replicas = pools.prefill,
                           .decode_router = "least_outstanding",
                           .kv_bytes_per_token = bytes_per_token,
                           .ports = std::vector<KvPort>(pools.prefill + pools.decode, pools.port),
                           .first_token = pools.first_token,
                           .overlapped_layers = pools.overlapped_layers};
  return config;
}

Outcome serve(const Pools& pools, const std::vector<Request>& requests) {
  LinearTimes times({});
  ListedRequests source(requests);
  Outcome outcome;
  outcome.totals = simulate(config_of(pools, times), source, outcome.run);
  return outcome;
}

Request one_request(int64_t input, int64_t output) {
  return {.id = 0, .arrival = one_second, .input_tokens = input, .output_tokens = output, .prefix_blocks = {}};
}

double seconds_between(Picoseconds begin, Picoseconds end) {
  return to_seconds(end - begin).value();
}

RequestRecord colocated(const Request& request) {
  LinearTimes times({});
  ListedRequests source({request});
  RecordedRun run;
  simulate({.replicas = {{.options = Pools().decode_options, .times = &times}}}, source, run);
  return run.requests.front();
}

TEST(Disaggregation, decode_workers_send_tokens_that_came_with_the_cache_too) {
  const auto served = [](double piece_seconds, int64_t output) {
    LinearTimes times({});
    SimulationConfig config = config_of({.first_token = FirstToken::transfer}, times);
    for (ReplicaConfig& replica : config.replicas) replica.front.piece = Seconds(piece_seconds);
    ListedRequests source({one_request(500, output)});
    RecordedRun run;
    simulate(config, source, run);
    return run.requests.front();
  };
  constexpr double piece = 1e-3;
  for (const int64_t output : {1, 20}) {
    const RequestRecord at_once = served(0, output), sent = served(piece, output);
    EXPECT_NEAR(seconds_between(at_once.first_token, sent.first_token), piece, 1e-9) << output;
    EXPECT_NEAR(seconds_between(at_once.last_token, sent.last_token), piece, 1e-9) << output;
  }
}

// How long tokens came after the ones before them.
class SeenGaps final : public RunObserver {
 public:
  void token_gaps(Picoseconds gap, int64_t count) override {
    for (int64_t i = 0; i < count; ++i) in_order.insert(std::upper_bound(in_order.begin(), in_order.end(), gap), gap);
  }
  std::vector<Picoseconds> in_order;
};

TEST(Disaggregation, a_token_that_comes_with_the_cache_is_sent_behind_those_made_before_it) {
  for (const bool async : {false, true}) {
    for (const int64_t output : {1, 30}) {  // of the one that comes while the other decodes
      const auto gaps = [&](bool repeats) {
        LinearTimes times({.step = 0.02, .token = 0, .context_token = 0});
        Pools pools{.first_token = FirstToken::transfer, .repeat_decodes = repeats};
        pools.decode_options.async_scheduling = async;
        SimulationConfig config = config_of(pools, times);
        for (ReplicaConfig& replica : config.replicas) replica.front.piece = Seconds(0.005);
        Request second = one_request(500, output);
        second.id = 1;
        second.arrival += one_second / 4;
        ListedRequests source({one_request(500, 100), second});
        SeenGaps seen;
        simulate(config, source, seen);
        return seen.in_order;
      };
      const std::vector<Picoseconds> at_once = gaps(true), one_by_one = gaps(false);
      ASSERT_EQ(at_once.size(), one_by_one.size());
      for (size_t i = 0; i < at_once.size(); ++i) {
        EXPECT_NEAR(seconds_between(at_once[i], one_by_one[i]), 0, 1e-9) << async << ' ' << output << ' ' << i;
      }
    }
  }
}

// TensorRT-LLM's executor fetches no more requests than its batch holds, so a first token waits for a place too.
TEST(Disaggregation, a_prompt_is_sent_to_tensorrt_llm_only_once_it_has_a_place_there) {
  const auto first_token_of_the_second = [](const std::string& scheduler, int64_t places) {
    Pools pools{.scheduler = scheduler, .first_token = FirstToken::transfer};
    pools.decode_options.max_num_seqs = places;
    Request second = one_request(500, 20);
    second.id = 1;
    const Outcome outcome = serve(pools, {one_request(500, 200), second});
    EXPECT_EQ(outcome.totals.completed, 2);
    Picoseconds ended = 0, begun = 0;
    for (const RequestRecord& record : outcome.run.requests) {
      if (record.id == 0) ended = record.last_token;
      if (record.id == 1) begun = record.first_token;
    }
    return seconds_between(ended, begun);
  };
  EXPECT_GT(first_token_of_the_second("trtllm", 1), 0);
  EXPECT_LT(first_token_of_the_second("trtllm", 2), -1);
  EXPECT_LT(first_token_of_the_second("sglang", 1), -1) << "it sets places aside for prompts on their way";
}

TEST(Disaggregation, only_prefill_workers_limit_the_length_of_a_prompt) {
  const auto served = [](bool prefill_cuts, bool decode_cuts) {
    Pools pools{.scheduler = "trtllm", .first_token = FirstToken::transfer};
    pools.prefill_options.max_num_batched_tokens = pools.decode_options.max_num_batched_tokens = 100;
    pools.prefill_options.enable_chunked_prefill = prefill_cuts;
    pools.decode_options.enable_chunked_prefill = decode_cuts;
    return serve(pools, {one_request(500, 20)});
  };
  const Outcome cut = served(true, false), refused = served(false, true);
  EXPECT_EQ(cut.totals.completed, 1);
  EXPECT_EQ(cut.run.requests.front().output_tokens, 20);
  EXPECT_EQ(refused.totals.completed, 0);
  EXPECT_EQ(refused.run.requests.front().rejection, Rejection::beyond_step);
}

TEST(Disaggregation, at_no_load_adds_the_transfer_to_the_colocated_latency) {
  const Request request = one_request(500, 20);
  const RequestRecord alone = colocated(request);
  const double transfer = 1e-4 + 500 * bytes_per_token / 1e9;
  Pools pools{.first_token = FirstToken::transfer};
  const RequestRecord handed = serve(pools, {request}).run.requests.front();
  EXPECT_NEAR(seconds_between(alone.last_token, handed.last_token), transfer, 1e-9);
  EXPECT_NEAR(seconds_between(alone.first_token, handed.first_token), transfer, 1e-9);

  // vLLM computes the last token of the prompt again: one decode more before the first token.
  pools.first_token = FirstToken::decode;
  const RequestRecord again = serve(pools, {request}).run.requests.front();
  EXPECT_NEAR(seconds_between(handed.first_token, again.first_token), 0.01 + 1e-5 + 499 * 1e-8, 1e-9);
}

TEST(Disaggregation, by_layer_leaves_the_last_layer_of_a_fast_network) {
  const Request request = one_request(500, 20);
  Pools pools{.port = {.bandwidth = BytesPerSecond(100e9), .latency = Seconds(0)}, .first_token = FirstToken::transfer};
  const RequestRecord whole = serve(pools, {request}).run.requests.front();
  pools.overlapped_layers = 10;
  const RequestRecord by_layer = serve(pools, {request}).run.requests.front();
  const double transfer = 500 * bytes_per_token / 100e9;
  EXPECT_NEAR(seconds_between(by_layer.first_token, whole.first_token), 0.9 * transfer, 1e-9);
}

TEST(Disaggregation, what_the_decode_worker_has_does_not_move) {
  Request first = one_request(500, 20);
  first.prefix_block_tokens = 16;
  for (int64_t block = 0; block < 500 / 16; ++block) first.prefix_blocks.push_back(block);
  Request second = first;
  second.id = 1;
  second.arrival = 10 * one_second;
  const Pools pools{.first_token = FirstToken::transfer};
  const std::vector<RequestRecord> records = serve(pools, {first, second}).run.sorted();
  // All of its full blocks are found on both sides: 4 tokens are computed, and move.
  const double transfer = 1e-4 + 4 * bytes_per_token / 1e9;
  EXPECT_EQ(records[1].cached_tokens, 496);
  EXPECT_NEAR(seconds_between(records[1].arrival, records[1].first_token), 0.01 + 4 * 1e-5 + transfer, 1e-9);
}

TEST(Disaggregation, serves_every_request_with_all_its_tokens) {
  for (const char* scheduler : {"vllm", "sglang", "trtllm", "trtllm_max_utilization"}) {
    for (const FirstToken first_token : {FirstToken::decode, FirstToken::transfer}) {
      for (const int64_t blocks : {60, 4000}) {  // few: workers wait for each other's cache
        SCOPED_TRACE(fmt::format("{} {} blocks", scheduler, blocks));
        Pools pools{.prefill = 2, .decode = 3, .scheduler = scheduler, .first_token = first_token};
        pools.prefill_options.num_gpu_blocks = pools.decode_options.num_gpu_blocks = blocks;
        pools.decode_options.max_num_seqs = 8;
        pools.decode_options.async_scheduling = pools.prefill_options.async_scheduling = true;
        const std::vector<Request> requests = random_requests(3, 200, 100, 300, 150);
        const Outcome outcome = serve(pools, requests);
        const std::vector<RequestRecord> records = outcome.run.sorted();
        ASSERT_EQ(records.size(), requests.size());
        EXPECT_EQ(outcome.totals.completed, static_cast<int64_t>(requests.size()));
        for (size_t i = 0; i < records.size(); ++i) {
          EXPECT_EQ(records[i].outcome, RequestOutcome::completed);
          EXPECT_EQ(records[i].output_tokens, requests[i].output_tokens);
          EXPECT_EQ(records[i].arrival, requests[i].arrival);
          EXPECT_LE(records[i].queued, records[i].scheduled);
          EXPECT_LT(records[i].scheduled, records[i].first_token);
          EXPECT_LE(records[i].first_token, records[i].last_token);
          EXPECT_GE(records[i].replica, 2);  // it ends where it decodes
        }
        int64_t prompt_tokens = 0, wanted = 0;
        for (const StepRecord& step : outcome.run.steps) {
          if (step.replica < 2) prompt_tokens += step.prefill_tokens;
        }
        for (const Request& request : requests) wanted += request.input_tokens;
        EXPECT_GE(prompt_tokens, wanted);
      }
    }
  }
}

TEST(Disaggregation, decides_the_same_when_equal_steps_are_advanced_at_once) {
  Pools pools{.prefill = 2, .decode = 2};
  const std::vector<Request> requests = random_requests(4, 150, 60, 300, 150);
  const Outcome fast = serve(pools, requests);
  pools.repeat_decodes = false;
  const Outcome slow = serve(pools, requests);
  EXPECT_LT(fast.totals.decisions, slow.totals.decisions);
  const std::vector<RequestRecord> a = fast.run.sorted(), b = slow.run.sorted();
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_NEAR(seconds_between(a[i].first_token, b[i].first_token), 0, 1e-9) << i;
    EXPECT_NEAR(seconds_between(a[i].last_token, b[i].last_token), 0, 1e-9) << i;
  }
}

TEST(Disaggregation, is_never_faster_than_its_slower_pool) {
  // Prompts alone, or decodes alone, on the same number of workers.
  std::vector<Request> requests = random_requests(5, 200, 1e9, 400, 100);
  const Outcome pair = serve({}, requests);
  std::vector<Request> prompts = requests;
  for (Request& request : prompts) request.output_tokens = 1;
  LinearTimes times({});
  ListedRequests source(prompts);
  RecordedRun run;
  const SimulationTotals prefill =
      simulate({.replicas = {{.options = Pools().prefill_options, .times = &times}}}, source, run);
  EXPECT_GE(pair.totals.end, prefill.end);
}

TEST(Disaggregation, a_slower_network_never_helps) {
  const std::vector<Request> requests = random_requests(6, 100, 20, 400, 60);
  double before = 0;
  for (const double bandwidth : {100e9, 1e9, 0.1e9}) {
    Pools pools;
    pools.port.bandwidth = BytesPerSecond(bandwidth);
    double sum = 0;
    for (const RequestRecord& record : serve(pools, requests).run.requests) {
      sum += seconds_between(record.arrival, record.first_token);
    }
    EXPECT_GT(sum, before);
    before = sum;
  }
}

TEST(Disaggregation, refuses_what_no_decode_worker_can_hold) {
  Pools pools;
  pools.decode_options.num_gpu_blocks = 20;
  const Outcome outcome = serve(pools, {one_request(1000, 10)});
  EXPECT_EQ(outcome.totals.rejected, 1);
  EXPECT_EQ(outcome.run.requests.front().outcome, RequestOutcome::rejected);
}

TEST(Disaggregation, arrivals_that_go_back_in_time_are_an_error) {
  Request late = one_request(10, 10), early = one_request(10, 10);
  early.id = 1;
  early.arrival = 0;
  EXPECT_THROW(serve({}, {late, early}), InputError);
}

}  // namespace foretoken::separate_pools_test
