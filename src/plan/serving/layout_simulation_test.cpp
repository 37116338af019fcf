#include "plan/serving/layout_simulation.h"

#include <gtest/gtest.h>

#include "plan/serving/search_test_support.h"
#include "serving/load/synthetic.h"

namespace foretoken::layout_simulation_test {

const ServingLayout one_engine{.pool = {.engine = {.device = "l4", .engine = "vllm"}}, .decode = {}};

// Lengths as of conversations: of the prompts, few are very long.
Traffic chats(uint64_t seed) {
  constexpr int64_t count = 30'000;
  constexpr LognormalLength prompt{.mean = 300, .sigma = 0.9, .most = 8192};
  constexpr LognormalLength answer{.mean = 60, .sigma = 0.9, .most = 4096};
  const std::unique_ptr<RequestSource> source = synthetic_load(
      {.rate = 1, .count = count}, lognormal_lengths(prompt, answer, seed), {.tokens = 0, .count = 1}, seed);
  return Traffic(Traffic::taken_from(*source, count));
}

double p99_ttft_ms(const ServingQuestion& question, const Traffic& traffic, double rate, int64_t requests) {
  const ServingFacts facts = roofline_facts();
  EngineShelf shelf(question, facts, traffic);
  const LayoutSimulator simulator(question, traffic, shelf);
  ServingRunRequest request = simulator.run_request(one_engine, shelf.engines(one_engine), rate, requests);
  request.percentiles = {99};
  return run_serving(request).metrics.ttft.percentiles_ms.front();
}

// The p99 of the TTFT is that of the prompts as long as few requests wait, so that it hardly rises with the rate: of a
// few thousand requests, a lucky one more or less among the longest puts the capacity elsewhere. A promise holds for
// most draws of as many other requests, and for all of them together.
TEST(LayoutSimulation, what_is_promised_holds_for_ten_thousand_other_requests) {
  constexpr double above_alone = 1.3;
  constexpr int others = 3;
  constexpr int64_t requests = 10'000;
  ServingQuestion question = small_question();
  question.slos = parse_slos("ttft<1000s@p99,tpot<1s@p99", "slo");
  question.slos[0].limit_ms = above_alone * p99_ttft_ms(question, chats(0), 0.2, requests);
  const ServingFacts facts = roofline_facts();
  // Of the limit, what other requests see at the capacity: the mean of several draws.
  const auto share_used = [&](double capacity) {
    double sum = 0;
    for (int other = 0; other < others; ++other) {
      sum += p99_ttft_ms(question, chats(100 + static_cast<uint64_t>(other)), capacity, requests);
    }
    return sum / others / question.slos[0].limit_ms;
  };
  for (const uint64_t seed : {1, 2}) {
    const Traffic traffic = chats(seed);
    EngineShelf shelf(question, facts, traffic);
    LayoutSimulator simulator(question, traffic, shelf);
    const PlanPoint promised = simulator.evaluate(one_engine, Effort::promised);
    ASSERT_NE(promised.at_capacity(), nullptr);
    EXPECT_GE(promised.at_capacity()->requests, 30'000);
    const double used = share_used(promised.capacity.value);
    EXPECT_LT(used, 1) << "seed " << seed << ", " << promised.capacity.value;
    EXPECT_GT(used, 0.85) << "seed " << seed << ", " << promised.capacity.value;
  }
}

TEST(LayoutSimulation, a_curve_tells_the_same_at_capacity_as_the_search_for_it) {
  const ServingQuestion question = small_question();
  const ServingFacts facts = roofline_facts();
  EngineShelf shelf(question, facts, small_traffic());
  LayoutSimulator simulator(question, small_traffic(), shelf);
  const PlanPoint full = simulator.evaluate(one_engine, Effort::promised);
  ASSERT_NE(full.at_capacity(), nullptr);
  for (const Effort effort : {Effort::curve, Effort::long_curve}) {
    // Another simulator, which has none of those runs.
    LayoutSimulator fresh(question, small_traffic(), shelf);
    const PlanPoint curve = fresh.evaluate(one_engine, effort);
    const PlanRun* same = curve.at_rate(full.capacity.value);
    ASSERT_NE(same, nullptr);
    EXPECT_EQ(same->achieved_ms, full.at_capacity()->achieved_ms);
  }
}

}  // namespace foretoken::layout_simulation_test
