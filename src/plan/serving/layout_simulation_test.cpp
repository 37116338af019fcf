#include "plan/serving/layout_simulation.h"

#include <gtest/gtest.h>

#include "plan/serving/search_test_support.h"

namespace foretoken::layout_simulation_test {

const ServingLayout one_engine{.pool = {.engine = {.device = "l4", .engine = "vllm"}}, .decode = {}};

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
