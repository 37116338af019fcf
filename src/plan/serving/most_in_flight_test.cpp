#include "plan/serving/most_in_flight.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "plan/serving/search_test_support.h"

namespace foretoken::most_in_flight_test {

TEST(MostInFlight, one_in_twenty_more_would_break_the_limits) {
  ServingQuestion question = small_question();
  question.slos = parse_slos("ttft<200ms@p95,tpot<4ms@p95", "slo");
  const ServingFacts facts = roofline_facts();
  const ServingLayout layout{.pool = {.engine = {.device = "l4", .engine = "vllm"}}, .decode = {}};
  EngineShelf shelf(question, facts, small_traffic());
  const PlanPoint known = LayoutSimulator(question, small_traffic(), shelf).evaluate(layout, Effort::quick);
  const int64_t most = most_in_flight(question, small_traffic(), facts, known);
  ASSERT_GT(most, 1);
  const auto serves = [&](int64_t in_flight) {
    question.in_flight = in_flight;
    LayoutSimulator simulator(question, small_traffic(), shelf);
    return std::min(simulator.evaluate(layout, Effort::quick).capacity.value,
                    simulator.evaluate(layout, Effort::promised).capacity.value);
  };
  EXPECT_GT(serves(most), 0);
  EXPECT_EQ(serves(most + std::max<int64_t>(1, most / 20)), 0);
}

TEST(MostInFlight, is_none_where_a_request_alone_breaks_the_limits) {
  ServingQuestion question = small_question();
  const ServingFacts facts = roofline_facts();
  const ServingLayout layout{.pool = {.engine = {.device = "l4", .engine = "vllm"}}, .decode = {}};
  question.slos = parse_slos("tpot<0.01ms@p95", "slo");
  EXPECT_EQ(most_in_flight(question, small_traffic(), facts, {.layout = layout, .capacity = {}, .runs = {}}), 0);
}

}  // namespace foretoken::most_in_flight_test
