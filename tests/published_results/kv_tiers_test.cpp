// What others measured or counted of KV caches below the GPU, against simulated runs.
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <memory>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "library/library.h"
#include "serving/load/trace.h"
#include "serving/results/metrics.h"
#include "serving/simulation/simulation.h"
#include "serving/steps/composed_steps.h"
#include "serving/test_support.h"

namespace foretoken::published_results_kv_tiers_test {

constexpr double llama_8b_kv_bytes = 131072;  // of a token: 32 layers, 8 heads of 128, keys and values, 2 bytes

// Two prompts of so many tokens in turn on a GPU whose cache holds one of them. The time to the first token of the
// fourth request.
double alternating_ttft(StepTimes& times, int64_t tokens, const std::optional<KvTierSettings>& tiers) {
  std::vector<Request> requests;
  for (int64_t i = 0; i < 4; ++i) {
    Request request{.id = i, .arrival = i * 100 * one_second, .input_tokens = tokens + 1, .output_tokens = 1};
    request.prefix_block_tokens = 16;
    for (int64_t block = 0; block < tokens / 16; ++block) request.prefix_blocks.push_back(i % 2 * 1'000'000 + block);
    requests.push_back(std::move(request));
  }
  SimulationConfig config{.kv_tiers = tiers};
  config.replicas.push_back(
      {.options = {.max_num_batched_tokens = 8192, .num_gpu_blocks = tokens / 16 + 4}, .times = &times});
  ListedRequests source(requests);
  RecordedRun run;
  simulate(config, source, run);
  return to_seconds(run.sorted().back().ttft()).value();
}

// vLLM's blog, "Inside vLLM's New Offloading Connector" (December 2025), Llama-3.1-8B on an H100: a prompt found in the
// host's memory has its first token 2 times as soon at 512 tokens, and up to 22 times for the longest prompts.
TEST(PublishedKvTiers, the_first_token_comes_2_to_22_times_as_soon_from_the_host) {
  const Library library(FORETOKEN_SOURCE_DIR "/data");
  const auto times = compose_steps({.model = library.models().model("Llama-3.1-8B"),
                                    .plan = {},
                                    .models = library.device_models("h100_sxm", {}),
                                    .stack = stacks_of(library).stack("vllm")});
  const KvTierKind& host = kv_tier_kind("host");
  const Device device = library.hardware().device("h100_sxm");
  const std::optional<TierSpeed> speed = host.usual_speed(device, library.hardware().node_with(device));
  ASSERT_TRUE(speed);
  const KvTierSettings tiers{.tiers = {{.kind = &host,
                                        .capacity_tokens = unlimited_tokens,
                                        .read = speed->read,
                                        .write = speed->write,
                                        .latency = speed->latency}},
                             .node_of_replica = {0},
                             .kv_bytes_per_token = llama_8b_kv_bytes,
                             .layers = 32,
                             .loads = TierLoads::apart};
  const auto sooner = [&](int64_t tokens) {
    return alternating_ttft(*times, tokens, std::nullopt) / alternating_ttft(*times, tokens, tiers);
  };
  const double shortest = sooner(512);
  double longest = 0;
  for (const int64_t tokens : {512, 2048, 8192, 32768, 114688}) {
    const double times_sooner = sooner(tokens);
    EXPECT_GT(times_sooner, longest) << tokens;
    longest = times_sooner;
  }
  RecordProperty("times_sooner_at_512", fmt::format("{:.2f}", shortest));
  RecordProperty("times_sooner_at_114688", fmt::format("{:.1f}", longest));
  EXPECT_NEAR(shortest, 2, 0.7);
  EXPECT_NEAR(longest, 22, 6);
}

// Blocks of the published trace that came before, counted by hand: 37.4% of the tokens where the last, partial block
// counts too, 36.6% of the blocks.
TEST(PublishedKvTiersNeedsData, mooncakes_conversations_are_found_as_often_as_their_blocks_repeat) {
  const char* folder = std::getenv("FORETOKEN_DATA");
  if (folder == nullptr) GTEST_SKIP() << "FORETOKEN_DATA is not set";
  LinearTimes times({.step = 1e-4, .token = 1e-7, .context_token = 0});
  SimulationConfig config;
  config.kv_tiers = {.tiers = {{.kind = &kv_tier_kind("remote"),
                                .capacity_tokens = unlimited_tokens,
                                .read = BytesPerSecond(std::numeric_limits<double>::infinity()),
                                .write = BytesPerSecond(std::numeric_limits<double>::infinity())}},
                     .node_of_replica = {0},
                     .kv_bytes_per_token = llama_8b_kv_bytes};
  config.replicas.push_back(
      {.options = {.max_num_batched_tokens = 8192, .num_gpu_blocks = 4000, .block_size = 512}, .times = &times});
  const std::unique_ptr<RequestSource> source =
      open_trace(std::filesystem::path(folder) / "traces" / "mooncake_conversation.csv.gz", {});
  MetricsCollector collector(0);
  simulate(config, *source, collector);
  const ServingMetrics metrics = collector.metrics({99});
  EXPECT_EQ(metrics.completed, 12031);
  const double share = static_cast<double>(metrics.cached_tokens) / static_cast<double>(metrics.input_tokens);
  EXPECT_NEAR(share, 0.37, 0.01);
}

}  // namespace foretoken::published_results_kv_tiers_test
