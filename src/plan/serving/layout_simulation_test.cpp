#include "plan/serving/layout_simulation.h"

#include <gtest/gtest.h>

#include "plan/serving/search_test_support.h"
#include "serving/load/synthetic.h"

namespace foretoken::layout_simulation_test {

const ServingLayout one_engine{.pool = {.engine = {.device = "l4", .engine = "vllm"}}, .decode = {}};

// Lengths as of conversations: of the prompts, few are very long.
Traffic chats(uint64_t seed) {
  constexpr int64_t count = 20'000;
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
// thousand requests, a lucky one more or less among the longest ten puts the capacity elsewhere.
TEST(LayoutSimulation, what_is_promised_holds_for_ten_thousand_other_requests) {
  constexpr double above_alone = 1.15;
  constexpr int others = 3;
  constexpr int64_t requests = 10'000;
  ServingQuestion question = small_question();
  question.slos = parse_slos("ttft<1000s@p99,tpot<1s@p99", "slo");
  double promised = 0;
  for (const uint64_t seed : {1, 2}) {
    const Traffic traffic = chats(seed);
    question.slos[0].limit_ms = above_alone * p99_ttft_ms(question, chats(0), 0.2, requests);
    const ServingFacts facts = roofline_facts();
    EngineShelf shelf(question, facts, traffic);
    promised = LayoutSimulator(question, traffic, shelf).evaluate(one_engine, Effort::full).capacity.value;
    ASSERT_GT(promised, 0);
    double sum = 0;
    for (int other = 0; other < others; ++other) {
      sum += p99_ttft_ms(question, chats(100 + static_cast<uint64_t>(other)), promised, requests);
    }
    const double share = sum / others / question.slos[0].limit_ms;
    EXPECT_LT(share, 1.05) << "seed " << seed << ", promised " << promised;
    EXPECT_GT(share, 0.9) << "seed " << seed << ", promised " << promised;
  }
}

TEST(LayoutSimulation, a_curve_tells_the_same_at_capacity_as_the_search_for_it) {
  const ServingQuestion question = small_question();
  const ServingFacts facts = roofline_facts();
  EngineShelf shelf(question, facts, small_traffic());
  LayoutSimulator simulator(question, small_traffic(), shelf);
  const PlanPoint full = simulator.evaluate(one_engine, Effort::full);
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
