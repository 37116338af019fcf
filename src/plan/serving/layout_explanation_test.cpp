#include "plan/serving/layout_explanation.h"

#include <gtest/gtest.h>

#include "plan/serving/plan_evaluator.h"
#include "plan/serving/search_test_support.h"

namespace foretoken::layout_explanation_test {

const ServingLayout one_engine{.pool = {.engine = {.device = "l4", .engine = "vllm"}}, .decode = {}};

TEST(LayoutExplanation, parts_make_up_the_time_to_the_first_token_and_queues_grow_with_the_rate) {
  const ServingQuestion question = small_question();
  const ServingFacts facts = roofline_facts();
  std::optional<LayoutExplanation> before;
  for (const double rate : {1.0, 30.0}) {
    const auto now = explain_layout(question, small_traffic(), facts, one_engine, rate);
    ASSERT_TRUE(now.has_value());
    const TtftParts& parts = now->run.ttft;
    EXPECT_EQ(parts.percentile, 95) << "that of the limit";
    EXPECT_NEAR(parts.queue_ms + parts.prefill_ms + parts.host_ms + parts.transfer_ms, parts.ttft_ms, 1e-6);
    EXPECT_GT(parts.prefill_ms, 0);
    EXPECT_EQ(parts.transfer_ms, 0);
    ASSERT_TRUE(now->run.model_flops_utilization && now->run.memory_bandwidth_utilization);
    EXPECT_GT(*now->run.model_flops_utilization, 0);
    EXPECT_LT(*now->run.model_flops_utilization, 1);
    EXPECT_LT(*now->run.memory_bandwidth_utilization, 1);
    EXPECT_LE(now->run.busy_share, 1 + 1e-9);
    if (before) {
      EXPECT_GT(now->run.busy_share, before->run.busy_share);
      EXPECT_GT(parts.queue_ms, before->run.ttft.queue_ms);
      EXPECT_GT(*now->run.model_flops_utilization, *before->run.model_flops_utilization);
    }
    before = now;
  }
}

TEST(LayoutExplanation, is_about_the_requests_that_the_layout_was_judged_by) {
  // The first prompts are longer than all others: runs begin after them.
  std::vector<Request> requests = random_requests(3, 3000, 10, 600, 60);
  for (size_t i = 0; i < 300; ++i) requests[i].input_tokens *= 4;
  const Traffic traffic(std::move(requests));
  ASSERT_GT(traffic.usual_start(), 0);
  const ServingQuestion question = small_question();
  const ServingFacts facts = roofline_facts();
  ServingQuestion at_rate = question;
  at_rate.rate = 5;
  EngineShelf shelf(at_rate, facts, traffic);
  LayoutSimulator simulator(at_rate, traffic, shelf);
  const PlanPoint point = simulator.evaluate(one_engine, Effort::full);
  ASSERT_NE(point.at_rate(5), nullptr);
  const auto explained = explain_layout(at_rate, traffic, facts, one_engine, 5);
  ASSERT_TRUE(explained.has_value());
  // The mean of requests around the percentile.
  EXPECT_NEAR(explained->run.ttft.ttft_ms / point.at_rate(5)->achieved_ms[0], 1, 0.05);
}

TEST(LayoutExplanation, of_two_pools_the_first_token_waits_for_the_cache) {
  const ServingQuestion question = small_question();
  ServingLayout layout = one_engine;
  layout.decode = layout.pool;
  const auto found = explain_layout(question, small_traffic(), roofline_facts(), layout, 2);
  ASSERT_TRUE(found.has_value());
  EXPECT_GT(found->run.ttft.transfer_ms, 0);
  EXPECT_LT(found->run.ttft.transfer_ms, found->run.ttft.ttft_ms);
}

TEST(LayoutExplanation, ends_when_nobody_waits) {
  const ServingQuestion question = small_question();
  EXPECT_THROW(
      explain_layout(question, small_traffic(), roofline_facts(), one_engine, 2, [] { throw SearchStopped(); }),
      SearchStopped);
}

}  // namespace foretoken::layout_explanation_test
