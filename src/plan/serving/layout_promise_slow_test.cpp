// Promises against what other requests of the same kind see.
#include <gtest/gtest.h>

#include <array>

#include "plan/serving/capacity_search.h"
#include "plan/serving/layout_simulation.h"
#include "plan/serving/search_test_support.h"
#include "serving/load/synthetic.h"

namespace foretoken::layout_promise_test {

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

// A thousand requests have ten of the longest prompts, more or less: what one such run sustains breaks the limit for
// other requests of the kind, by little where the thousand is chosen to be like the rest. What is promised keeps it.
TEST(LayoutPromise, holds_for_other_requests_where_one_run_of_a_thousand_does_not) {
  constexpr double above_alone = 1.6;
  constexpr int64_t requests = 10'000;
  ServingQuestion question = small_question();
  question.slos = parse_slos("ttft<1000s@p99,tpot<20ms@p99", "slo");
  question.slos[0].limit_ms = above_alone * p99_ttft_ms(question, chats(0), 0.2, requests);
  const double limit_ms = question.slos[0].limit_ms;
  const std::array draws = {chats(100), chats(101), chats(102)};
  // Of the limit, what other requests see at the capacity: the mean of several draws.
  const auto share_used = [&](double capacity) {
    double sum = 0;
    for (const Traffic& draw : draws) sum += p99_ttft_ms(question, draw, capacity, requests);
    return sum / static_cast<double>(draws.size()) / limit_ms;
  };
  // Of several draws, the one with the luckiest thousand.
  uint64_t lucky = 0;
  double by_one_run = 0;
  for (const uint64_t seed : {1, 2, 3, 4, 5, 6}) {
    const Traffic traffic = chats(seed);
    const double found = highest_rate({.start = 150, .tolerance = 0.02}, [&](double rate) {
      return p99_ttft_ms(question, traffic, rate, 1000) <= limit_ms;
    });
    if (found > by_one_run) {
      by_one_run = found;
      lucky = seed;
    }
  }
  EXPECT_GT(share_used(by_one_run), 1.01) << by_one_run;
  const ServingFacts facts = roofline_facts();
  const Traffic traffic = chats(lucky);
  EngineShelf shelf(question, facts, traffic);
  LayoutSimulator simulator(question, traffic, shelf);
  const PlanPoint promised = simulator.evaluate(one_engine, Effort::promised);
  ASSERT_NE(promised.at_capacity(), nullptr);
  EXPECT_LT(share_used(promised.capacity.value), 1) << promised.capacity.value;
  EXPECT_GT(share_used(promised.capacity.value), 0.85) << promised.capacity.value;
}

}  // namespace foretoken::layout_promise_test
