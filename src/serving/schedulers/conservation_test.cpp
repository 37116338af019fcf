// Laws that hold for every scheduler on any workload: requests, tokens and blocks are conserved.
#include <map>

#include <gtest/gtest.h>

#include "serving/scheduling/router.h"
#include "serving/test_support.h"

namespace foretoken::conservation_test {

struct Workload {
  std::vector<SchedulerOptions> replicas;
  std::string router;
  std::vector<Request> requests;
};

bool heads(RandomStream& random) {
  return random.below(2) == 0;
}

int64_t between(RandomStream& random, int64_t least, int64_t most) {
  return least + static_cast<int64_t>(random.below(static_cast<uint64_t>(most - least + 1)));
}

SchedulerOptions random_options(RandomStream& random) {
  SchedulerOptions options{.max_num_batched_tokens = between(random, 64, 1024),
                           .max_num_seqs = between(random, 1, 40),
                           .max_model_len = heads(random) ? 0 : between(random, 300, 600),
                           .num_gpu_blocks = between(random, 45, 300),
                           .policy = heads(random) ? QueuePolicy::fcfs : QueuePolicy::priority,
                           .enable_chunked_prefill = heads(random),
                           .enable_prefix_caching = heads(random),
                           .async_scheduling = heads(random),
                           .scheduler_reserve_full_isl = heads(random),
                           .pipeline_stages = heads(random) ? 1 : between(random, 2, 4)};
  // Without chunks vLLM's steps must hold the longest sequence.
  if (!options.enable_chunked_prefill) {
    options.max_num_batched_tokens = std::max(options.max_num_batched_tokens, options.max_model_len);
  }
  if (random.below(3) == 0) {
    options.cache_groups = {{.kind = "full attention", .block_tokens = 16},
                            {.kind = "window of 64", .block_tokens = 16, .window = 64}};
  }
  if (random.below(3) == 0) options.lock_step_ranks = between(random, 2, 4);
  return options;
}

Workload random_workload(uint64_t seed) {
  RandomStream random(seed, "workload");
  Workload workload;
  const int64_t replicas = between(random, 1, 3);
  for (int64_t i = 0; i < replicas; ++i) workload.replicas.push_back(random_options(random));
  const std::vector<std::string> routers = router_names();
  workload.router = routers[random.below(routers.size())];
  workload.requests = random_requests(seed, 80, random.uniform(5, 200), 300, 150);
  for (Request& request : workload.requests) {
    request.priority = static_cast<int32_t>(random.below(3));
    request.session = static_cast<int64_t>(random.below(10));
    if (random.below(20) == 0) request.output_tokens = 0;
    if (random.below(20) == 0) request.input_tokens = 20'000;
    if (heads(random)) continue;
    request.prefix_block_tokens = 16;
    const auto text = static_cast<int64_t>(random.below(3)) * 1000;
    for (int64_t block = 0; block < std::min<int64_t>(request.input_tokens, 320) / 16; ++block) {
      request.prefix_blocks.push_back(text + block);
    }
  }
  return workload;
}

// Memories below the GPUs, for every other workload.
std::optional<KvTierSettings> random_tiers(uint64_t seed, size_t replicas) {
  RandomStream random(seed, "tiers");
  if (heads(random)) return std::nullopt;
  KvTierSettings settings{.kv_bytes_per_token = 1e5,
                          .layers = 32,
                          .writes = static_cast<TierWrites>(random.below(3)),
                          .loads = static_cast<TierLoads>(random.below(3)),
                          .prefetch = heads(random),
                          .recompute_if_faster = heads(random),
                          .swap = heads(random)};
  for (size_t i = 0; i < replicas; ++i) settings.node_of_replica.push_back(static_cast<int64_t>(i / 2));
  const int64_t tiers = between(random, 1, 3);
  for (int64_t i = 0; i < tiers; ++i) {
    settings.tiers.push_back({.kind = &kv_tier_kinds()[random.below(kv_tier_kinds().size())],
                              .capacity_tokens = between(random, 0, 4000),
                              .read = BytesPerSecond(random.uniform(1e8, 1e11)),
                              .write = BytesPerSecond(random.uniform(1e8, 1e11)),
                              .latency = Seconds(random.uniform(0, 1e-3))});
  }
  return settings;
}

// Follows every request through its steps.
class Ledger : public RunObserver {
 public:
  struct Account {
    int64_t tokens_out = 0;
    int64_t computed = 0;  // in the cache after its last step
    int64_t restarts = 0;  // steps that did not go on where the one before ended
    Picoseconds last_end = 0, last_token = 0;
  };

  bool watches(int64_t /*request*/) const override { return true; }

  void request_stepped(const RequestStep& own, const StepRecord& step) override {
    Account& account = accounts[own.request];
    if (account.computed > 0 && own.context_tokens != account.computed) ++account.restarts;
    EXPECT_GE(step.begin, account.last_token) << "a step goes on from tokens that have come out";
    EXPECT_GT(step.end, account.last_end) << "steps of a request end in order";
    account.computed = own.context_tokens + own.new_tokens * step.repeats;
    account.last_end = step.end;
    if (own.yields > 0) {
      account.tokens_out += step.repeats;
      account.last_token = step.end;
    }
    computed_by_requests += own.new_tokens * step.repeats;
  }

  void step_ran(const StepRecord& step) override {
    EXPECT_GT(step.end, step.begin);
    most_blocks[step.replica] = std::max(most_blocks[step.replica], step.kv_blocks_used + step.kv_blocks_grown);
    computed_in_steps += step.prefill_tokens + step.decode_tokens * step.repeats;
  }

  void request_ended(const RequestRecord& record) override { ended.push_back(record); }

  std::map<int64_t, Account> accounts;
  std::map<int32_t, int64_t> most_blocks;
  std::vector<RequestRecord> ended;
  int64_t computed_in_steps = 0, computed_by_requests = 0;
};

class Conservation : public testing::TestWithParam<SchedulerKind> {
 protected:
  static constexpr uint64_t workloads = 40;
};

TEST_P(Conservation, every_request_ends_once_with_all_its_tokens_and_no_more_blocks_than_there_are) {
  int64_t preemptions = 0, hits = 0, rejected = 0;
  for (uint64_t seed = 0; seed < workloads; ++seed) {
    SCOPED_TRACE(seed);
    const Workload workload = random_workload(seed);
    LinearTimes times({});
    SimulationConfig config{
        .router = workload.router, .seed = seed, .kv_tiers = random_tiers(seed, workload.replicas.size())};
    for (const SchedulerOptions& options : workload.replicas) {
      config.replicas.push_back({.scheduler = std::string(GetParam().name),
                                 .options = options,
                                 .times = &times,
                                 .receive_interval = seed % 3 == 0 ? 7 : 1});
    }
    ListedRequests source(workload.requests);
    Ledger ledger;
    // Ensures by itself that at the end nothing runs, waits or holds a block.
    const SimulationTotals totals = simulate(config, source, ledger);

    ASSERT_EQ(ledger.ended.size(), workload.requests.size());
    std::vector<bool> seen(workload.requests.size());
    for (const RequestRecord& record : ledger.ended) {
      const auto index = static_cast<size_t>(record.id);
      EXPECT_FALSE(seen[index]) << "a request ends once";
      seen[index] = true;
      const Request& request = workload.requests[index];
      if (record.outcome == RequestOutcome::rejected) {
        EXPECT_FALSE(ledger.accounts.contains(record.id)) << "what is rejected never runs";
        continue;
      }
      const int64_t longest = workload.replicas[static_cast<size_t>(record.replica)].max_model_len;
      const int64_t wanted =
          longest > 0 ? std::min(request.output_tokens, longest - request.input_tokens) : request.output_tokens;
      const Ledger::Account& account = ledger.accounts[record.id];
      EXPECT_EQ(record.output_tokens, wanted);
      EXPECT_EQ(account.tokens_out, wanted);
      EXPECT_EQ(account.computed, request.input_tokens + wanted - 1) << "the last token is not put into the cache";
      EXPECT_LE(account.restarts, record.preemptions) << "tokens are computed in order";
      EXPECT_LT(record.cached_tokens, request.input_tokens);
      EXPECT_EQ(account.last_token, record.last_token);
      hits += record.cached_tokens;
    }
    for (const auto& [replica, blocks] : ledger.most_blocks) {
      const SchedulerOptions& options = workload.replicas[static_cast<size_t>(replica)];
      EXPECT_LE(blocks, options.num_gpu_blocks * options.lock_step_ranks);
    }
    EXPECT_EQ(ledger.computed_in_steps, ledger.computed_by_requests);
    EXPECT_EQ(totals.completed + totals.rejected, static_cast<int64_t>(workload.requests.size()));
    preemptions += totals.preemptions;
    rejected += totals.rejected;
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(rejected, 0) << "the workloads have requests that can never run";
  if (GetParam().name == std::string_view("vllm")) {
    EXPECT_GT(preemptions, 0) << "some workloads are meant to be tight";
    EXPECT_GT(hits, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(kinds, Conservation, testing::ValuesIn(scheduler_kinds().begin(), scheduler_kinds().end()),
                         [](const auto& kind) { return std::string(kind.param.name); });

}  // namespace foretoken::conservation_test
