// Laws of runs with tiers below the GPU.
#include "serving/tiers/kv_tiers.h"

#include <limits>

#include <gtest/gtest.h>

#include "serving/test_support.h"

namespace foretoken::tiers_kv_tiers_test {

constexpr double kv_bytes = 1e5;  // of a token
constexpr int64_t block = 16;
constexpr double infinite = std::numeric_limits<double>::infinity();

KvTier tier(std::string_view kind, int64_t tokens, double bytes_per_second, double latency_s = 0) {
  return {.kind = &kv_tier_kind(kind),
          .capacity_tokens = tokens,
          .read = BytesPerSecond(bytes_per_second),
          .write = BytesPerSecond(bytes_per_second),
          .latency = Seconds(latency_s)};
}

KvTierSettings settings_of(std::vector<KvTier> tiers, TierWrites writes = TierWrites::through) {
  return {.tiers = std::move(tiers),
          .node_of_replica = {0},
          .kv_bytes_per_token = kv_bytes,
          .layers = 32,
          .writes = writes};
}

struct Outcome {
  RecordedRun run;
  SimulationTotals totals;

  int64_t cached_tokens() const {
    int64_t sum = 0;
    for (const RequestRecord& record : run.requests) sum += record.cached_tokens;
    return sum;
  }
  double mean_ttft_s() const {
    double sum = 0;
    for (const RequestRecord& record : run.requests) sum += to_seconds(record.ttft()).value();
    return sum / static_cast<double>(run.requests.size());
  }
};

// A few texts that begin alike and go on differently, asked for again and again.
std::vector<Request> sharing_requests(uint64_t seed, int64_t count, double rate) {
  RandomStream random(seed, "sharing");
  std::vector<Request> requests = random_requests(seed, count, rate, 320, 40);
  for (Request& request : requests) {
    request.prefix_block_tokens = block;
    const auto text = static_cast<int64_t>(random.below(8)), turn = static_cast<int64_t>(random.below(6));
    request.input_tokens = std::max<int64_t>(request.input_tokens, 48);
    for (int64_t i = 0; i < request.input_tokens / block; ++i) {
      request.prefix_blocks.push_back(i < 2 ? i : 1000 * text + (i < 6 ? 0 : 100 * turn) + i);
    }
  }
  return requests;
}

struct Engine {
  std::string scheduler = "vllm";
  int64_t gpu_blocks = 120, sequences = 2, replicas = 1;
  std::string router = "round_robin";
  bool repeat_decodes = true;
  std::optional<KvTierSettings> tiers = {};
};

Outcome run_of(const Engine& setup, std::vector<Request> requests) {
  LinearTimes times({.step = 0.004, .token = 2e-5, .context_token = 1e-8});
  SimulationConfig config{.router = setup.router, .kv_tiers = setup.tiers, .repeat_decodes = setup.repeat_decodes};
  const SchedulerOptions options{.max_num_batched_tokens = 256,
                                 .max_num_seqs = setup.sequences,
                                 .num_gpu_blocks = setup.gpu_blocks,
                                 .block_size = setup.scheduler == "sglang" ? 1 : block};
  config.replicas.assign(static_cast<size_t>(setup.replicas),
                         {.scheduler = setup.scheduler, .options = options, .times = &times});
  ListedRequests source(std::move(requests));
  Outcome outcome;
  outcome.totals = simulate(config, source, outcome.run);
  return outcome;
}

void expect_same_times(const Outcome& one, const Outcome& other) {
  const std::vector<RequestRecord> a = one.run.sorted(), b = other.run.sorted();
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].scheduled, b[i].scheduled);
    EXPECT_EQ(a[i].first_token, b[i].first_token);
    EXPECT_EQ(a[i].last_token, b[i].last_token);
    EXPECT_EQ(a[i].cached_tokens, b[i].cached_tokens);
  }
}

constexpr TierWrites all_writes[] = {TierWrites::back, TierWrites::through, TierWrites::selective};

TEST(KvTiers, a_node_shares_its_memory_but_not_what_a_server_keeps_for_itself) {
  KvTierSettings settings = settings_of({tier("host", 100, 1e9), tier("host", 100, 1e9)});
  settings.node_of_replica = {0, 0};
  settings.tiers[1].is_own = true;
  KvTiers tiers(settings);
  EXPECT_EQ(&tiers.store(0, 0), &tiers.store(0, 1));
  EXPECT_NE(&tiers.store(1, 0), &tiers.store(1, 1));
}

TEST(KvTiers, one_of_no_size_changes_nothing) {
  for (const char* scheduler : {"vllm", "vllm_v0", "sarathi", "sglang", "trtllm"}) {
    const int64_t blocks = std::string_view(scheduler) == "sglang" ? 120 * block : 120;
    const Engine plain{.scheduler = scheduler, .gpu_blocks = blocks, .sequences = 8};
    for (const TierWrites writes : all_writes) {
      Engine with = plain;
      with.tiers = settings_of({tier("host", 0, 1e9), tier("nvme", 0, 1e9)}, writes);
      with.tiers->swap = true;
      const std::vector<Request> requests = sharing_requests(3, 200, 40);
      expect_same_times(run_of(plain, requests), run_of(with, requests));
    }
  }
}

TEST(KvTiers, without_limits_they_are_an_infinite_gpu_cache) {
  for (const char* scheduler : {"vllm", "sarathi", "sglang", "trtllm"}) {
    SCOPED_TRACE(scheduler);
    const bool pages = std::string_view(scheduler) == "sglang";
    for (const TierWrites writes : {TierWrites::back, TierWrites::through}) {
      const std::vector<Request> requests = sharing_requests(5, 300, 20);
      const Engine endless{.scheduler = scheduler, .gpu_blocks = pages ? 10'000'000 : 1'000'000};
      Engine tiered{.scheduler = scheduler, .gpu_blocks = pages ? 60 * block : 60};
      tiered.tiers = settings_of({tier("host", unlimited_tokens, infinite)}, writes);
      const Outcome whole = run_of(endless, requests), split = run_of(tiered, requests);
      expect_same_times(whole, split);
      EXPECT_GT(split.totals.kv_tiers.hit_tokens(), 0) << "the GPU alone would not have been enough";
      EXPECT_EQ(split.totals.kv_tiers.waited, 0);
    }
  }
}

TEST(KvTiers, hits_never_exceed_those_of_an_infinite_cache) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    RandomStream random(seed, "tiers");
    // One after the other, so that what may be found does not depend on when.
    const std::vector<Request> requests = sharing_requests(seed, 60, 0.5);
    const int64_t bound = run_of({.gpu_blocks = 1'000'000, .sequences = 1}, requests).cached_tokens();
    Engine tiered{.gpu_blocks = 60, .sequences = 1};
    tiered.tiers =
        settings_of({tier("host", block * static_cast<int64_t>(random.below(100)), random.uniform(1e8, 1e10)),
                     tier("nvme", block * static_cast<int64_t>(random.below(200)), random.uniform(1e8, 1e10))},
                    all_writes[random.below(3)]);
    const Outcome outcome = run_of(tiered, requests);
    EXPECT_LE(outcome.cached_tokens(), bound);
    EXPECT_LE(outcome.totals.kv_tiers.hit_tokens(), outcome.cached_tokens());
  }
}

TEST(KvTiers, whole_blocks_move_and_no_more_are_held_than_fit) {
  for (const TierWrites writes : all_writes) {
    Engine tiered{.gpu_blocks = 60};
    tiered.tiers = settings_of({tier("host", 40 * block, 1e9), tier("nvme", 100 * block, 5e8)}, writes);
    const Outcome outcome = run_of(tiered, sharing_requests(7, 300, 10));
    const std::vector<KvTierUse>& uses = outcome.totals.kv_tiers.tiers;
    ASSERT_EQ(uses.size(), 2U);
    int64_t read = 0;
    for (const KvTierUse& use : uses) {
      EXPECT_EQ(use.read_tokens % block, 0);
      EXPECT_EQ(use.written_tokens % block, 0);
      EXPECT_GE(use.read_tokens, use.hit_tokens + use.resumed_tokens);
      EXPECT_NEAR(to_seconds(use.write_busy).value(),
                  static_cast<double>(use.written_tokens) * kv_bytes / (use.kind == "host" ? 1e9 : 5e8), 1e-6);
      read += use.read_tokens;
    }
    EXPECT_GT(read, 0);
    EXPECT_LE(uses[0].most_tokens, 40 * block);
    EXPECT_LE(uses[1].most_tokens, 100 * block);
  }
}

// Every block of every request is used whatever the tier holds, so a larger one holds a superset.
TEST(KvTiers, a_larger_one_never_has_fewer_hits) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    const std::vector<Request> requests = sharing_requests(seed, 80, 0.5);
    int64_t before = -1;
    for (const int64_t blocks : {0, 10, 20, 40, 80, 160, 320}) {
      Engine tiered{.gpu_blocks = 45, .sequences = 1};
      tiered.tiers = settings_of({tier("host", blocks * block, infinite)});
      const int64_t hits = run_of(tiered, requests).cached_tokens();
      EXPECT_GE(hits, before) << blocks;
      before = hits;
    }
  }
}

TEST(KvTiers, a_faster_link_is_never_later_and_layers_hide_some_of_it) {
  const std::vector<Request> requests = sharing_requests(11, 80, 0.5);
  double before = std::numeric_limits<double>::infinity();
  for (const double speed : {2e8, 1e9, 5e9, infinite}) {
    Engine tiered{.gpu_blocks = 45, .sequences = 1};
    tiered.tiers = settings_of({tier("host", unlimited_tokens, speed)});
    tiered.tiers->tiers.front().write = BytesPerSecond(infinite);  // what is found does not depend on it
    const double by_layer = run_of(tiered, requests).mean_ttft_s();
    tiered.tiers->loads = TierLoads::blocking;
    const double blocking = run_of(tiered, requests).mean_ttft_s();
    EXPECT_LE(by_layer, blocking);
    EXPECT_LE(blocking, before);
    before = blocking;
  }
}

TEST(KvTiers, a_single_load_takes_its_bytes_over_the_bandwidth) {
  std::vector<Request> requests = sharing_requests(1, 1, 1);
  requests.front().input_tokens = 321;
  requests.front().prefix_blocks.clear();
  for (int64_t i = 0; i < 20; ++i) requests.front().prefix_blocks.push_back(i);
  Request other = requests.front(), again = requests.front();
  other.id = 1;
  other.arrival = requests.front().arrival + 10 * one_second;
  for (int64_t& number : other.prefix_blocks) number += 500;
  again.id = 2;
  again.arrival = other.arrival + 10 * one_second;
  requests.push_back(other);
  requests.push_back(again);
  Engine tiered{.gpu_blocks = 40, .sequences = 1};
  tiered.tiers = settings_of({tier("host", unlimited_tokens, 1e9, 0.5)});
  tiered.tiers->loads = TierLoads::blocking;
  const Outcome outcome = run_of(tiered, requests);
  const KvTierUse& use = outcome.totals.kv_tiers.tiers.front();
  ASSERT_GT(use.hit_tokens, 0);
  const double expected = static_cast<double>(use.read_tokens) * kv_bytes / 1e9 + 0.5;
  EXPECT_NEAR(to_seconds(outcome.totals.kv_tiers.waited).value(), expected, 1e-9);
  EXPECT_EQ(outcome.totals.kv_tiers.waiting_steps, 1);
}

TEST(KvTiers, what_is_slower_to_load_than_to_compute_is_computed) {
  const std::vector<Request> requests = sharing_requests(13, 80, 0.5);
  const Engine plain{.gpu_blocks = 45, .sequences = 1};
  Engine slow = plain;
  slow.tiers = settings_of({tier("nvme", unlimited_tokens, 1e7)});
  slow.tiers->loads = TierLoads::blocking;
  const double without = run_of(plain, requests).mean_ttft_s();
  EXPECT_GT(run_of(slow, requests).mean_ttft_s(), without);
  slow.tiers->recompute_if_faster = true;
  EXPECT_LE(run_of(slow, requests).mean_ttft_s(), without);
}

TEST(KvTiers, waiting_requests_have_what_lies_deep_brought_nearer) {
  Engine tiered{.gpu_blocks = 45, .sequences = 1};
  tiered.tiers = settings_of({tier("host", 60 * block, 1e10), tier("remote", unlimited_tokens, 1e9, 0.01)});
  const std::vector<Request> requests = sharing_requests(17, 200, 15);
  const Outcome ahead = run_of(tiered, requests);
  tiered.tiers->prefetch = false;
  const Outcome on_demand = run_of(tiered, requests);
  EXPECT_LT(ahead.mean_ttft_s(), on_demand.mean_ttft_s());
  EXPECT_LT(ahead.totals.kv_tiers.waited, on_demand.totals.kv_tiers.waited);
}

TEST(KvTiers, requests_that_wait_apart_hold_up_nobody) {
  const std::vector<Request> requests = sharing_requests(29, 300, 12);
  Engine engine{.gpu_blocks = 120, .sequences = 6};
  engine.tiers = settings_of({tier("nvme", unlimited_tokens, 3e8)});
  engine.tiers->tiers.front().write = BytesPerSecond(infinite);
  engine.tiers->loads = TierLoads::blocking;
  const Outcome blocking = run_of(engine, requests);
  engine.tiers->loads = TierLoads::apart;
  const Outcome apart = run_of(engine, requests);
  EXPECT_EQ(apart.run.requests.size(), requests.size());
  EXPECT_EQ(apart.totals.kv_tiers.waiting_steps, 0);
  EXPECT_GT(apart.totals.kv_tiers.waiting_requests, 0);
  EXPECT_GE(apart.totals.kv_tiers.requests_waited, apart.totals.kv_tiers.tiers.front().read_busy);
  const auto mean_gap = [](const Outcome& outcome) {
    return static_cast<double>(outcome.run.gap_time) / static_cast<double>(outcome.run.gaps);
  };
  EXPECT_LT(mean_gap(apart), mean_gap(blocking));
}

TEST(KvTiers, a_request_alone_waits_as_long_apart_as_it_would_hold_up_its_step) {
  const std::vector<Request> requests = sharing_requests(31, 60, 0.5);
  Engine engine{.gpu_blocks = 45, .sequences = 1};
  engine.tiers = settings_of({tier("nvme", unlimited_tokens, 1e9, 0.001)});
  engine.tiers->loads = TierLoads::blocking;
  const Outcome blocking = run_of(engine, requests);
  engine.tiers->loads = TierLoads::apart;
  const Outcome apart = run_of(engine, requests);
  ASSERT_GT(apart.totals.kv_tiers.waiting_requests, 0);
  EXPECT_EQ(apart.totals.kv_tiers.requests_waited, blocking.totals.kv_tiers.waited);
  EXPECT_NEAR(apart.mean_ttft_s(), blocking.mean_ttft_s(), 1e-9);
}

TEST(KvTiers, equal_steps_advanced_at_once_give_the_same_times) {
  for (const TierLoads loads : {TierLoads::blocking, TierLoads::by_layer, TierLoads::apart}) {
    const std::vector<Request> requests = sharing_requests(37, 200, 12);
    Engine engine{.gpu_blocks = 120, .sequences = 6};
    engine.tiers = settings_of({tier("host", 80 * block, infinite, 1e-4)});
    engine.tiers->loads = loads;
    const std::vector<RequestRecord> at_once = run_of(engine, requests).run.sorted();
    engine.repeat_decodes = false;
    const std::vector<RequestRecord> one_by_one = run_of(engine, requests).run.sorted();
    for (size_t i = 0; i < requests.size(); ++i) {
      EXPECT_NEAR(to_seconds(at_once[i].first_token - one_by_one[i].first_token).value(), 0, 1e-6);
      EXPECT_NEAR(to_seconds(at_once[i].last_token - one_by_one[i].last_token).value(), 0, 1e-6);
      EXPECT_EQ(at_once[i].cached_tokens, one_by_one[i].cached_tokens);
    }
  }
}

TEST(KvTiers, a_remote_store_is_everybodys_and_a_host_its_nodes) {
  const std::vector<Request> requests = sharing_requests(19, 200, 4);
  const auto hits = [&](std::string_view kind, std::vector<int64_t> nodes) {
    Engine tiered{.gpu_blocks = 45, .sequences = 1, .replicas = 2};
    tiered.tiers = settings_of({tier(kind, unlimited_tokens, infinite)});
    tiered.tiers->node_of_replica = std::move(nodes);
    return run_of(tiered, requests).cached_tokens();
  };
  const int64_t apart = hits("host", {0, 1});
  EXPECT_EQ(hits("host", {0, 0}), hits("remote", {0, 1}));
  EXPECT_GT(hits("remote", {0, 1}), apart);
  EXPECT_EQ(hits("peer", {0, 0}), apart);
}

TEST(KvTiers, preempted_sequences_that_were_swapped_are_not_computed_again) {
  const std::vector<Request> requests = random_requests(23, 60, 100, 100, 150);
  const Engine plain{.gpu_blocks = 60, .sequences = 16};
  Engine swapping = plain;
  swapping.tiers = settings_of({tier("host", unlimited_tokens, 1e10)});
  swapping.tiers->swap = true;
  const Outcome again = run_of(plain, requests), swapped = run_of(swapping, requests);
  const auto computed = [](const Outcome& outcome) {
    int64_t tokens = 0;
    for (const StepRecord& step : outcome.run.steps) tokens += step.prefill_tokens;
    return tokens;
  };
  ASSERT_GT(again.totals.preemptions, 0);
  ASSERT_GT(swapped.totals.preemptions, 0);
  EXPECT_EQ(swapped.totals.kv_tiers.swapped_sequences, swapped.totals.preemptions);
  int64_t prompts = 0;
  for (const Request& request : requests) prompts += request.input_tokens;
  EXPECT_GT(computed(again), prompts);
  // Of a sequence that comes back only the last token is computed.
  EXPECT_LE(computed(swapped), prompts + 2 * swapped.totals.preemptions);
  EXPECT_EQ(swapped.totals.kv_tiers.tiers.front().hit_tokens, 0);
  EXPECT_GT(swapped.totals.kv_tiers.tiers.front().resumed_tokens, 0);
}

}  // namespace foretoken::tiers_kv_tiers_test
