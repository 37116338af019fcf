#include "report/plan/unmet_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/serving/search_test_support.h"

namespace foretoken::unmet_plan_test {

using testing::HasSubstr;
using testing::Not;

// A layout whose only run took these latencies, of which the limits are 60 and 4 ms.
PlanPoint point_with(Effort effort, double ttft_ms, double tpot_ms, double capacity) {
  PlanPoint point{.layout = {.pool = {.engine = {.device = "l4", .engine = "vllm"}}, .decode = {}},
                  .effort = effort,
                  .capacity = {.value = capacity, .low = capacity, .high = capacity},
                  .runs = {}};
  point.runs.push_back({.rate = 14, .in_flight = 39, .attained = capacity > 0, .achieved_ms = {ttft_ms, tpot_ms}});
  return point;
}

std::string text_of(const ServingQuestion& question, const PlanPoint& point) {
  ServingSearchResult result;
  result.layouts = 30;
  result.points = {point};
  for (const double ms : {5.0, 1.0}) result.fastest_alone.push_back({.ms = ms, .layout = point.layout});
  return unmet_plan_text({.question = question, .traffic = small_traffic(), .result = result});
}

TEST(UnmetPlan, a_run_within_the_limits_is_not_said_to_break_them) {
  const ServingQuestion question = small_question();
  EXPECT_THAT(text_of(question, point_with(Effort::promised, 59, 3.9, 0)), HasSubstr("That run keeps the limits"));
  EXPECT_THAT(text_of(question, point_with(Effort::promised, 61, 3.9, 0)), Not(HasSubstr("keeps the limits")));
}

TEST(UnmetPlan, a_run_in_which_too_many_requests_fail_or_miss_one_of_several_limits_does_not_keep_them) {
  ServingQuestion question = small_question();
  PlanPoint failing = point_with(Effort::promised, 59, 3.9, 0);
  failing.runs.front().failed_share = 0.06;  // of 5% that may miss a limit
  EXPECT_THAT(text_of(question, failing), testing::AllOf(Not(HasSubstr("keeps the limits")), HasSubstr(" 6% of its")));
  question.joint_percent = 95;
  EXPECT_THAT(text_of(question, point_with(Effort::promised, 59, 3.9, 0)), HasSubstr("Fewer than 95% of its requests"));
}

TEST(UnmetPlan, a_limit_that_was_likely_meant_in_seconds_is_shown_in_them) {
  ServingQuestion question = small_question();
  question.slos = parse_slos("ttft<0.5,tpot<0.04", "slo");
  const std::string text = text_of(question, point_with(Effort::promised, 59, 3.9, 0));
  EXPECT_THAT(text, HasSubstr("If 0.5 s was meant, write ttft<0.5s@p99."));
  EXPECT_THAT(text, Not(HasSubstr("write tpot")));
  question.slos = parse_slos("ttft<0.001,tpot<0.04", "slo");
  EXPECT_THAT(text_of(question, point_with(Effort::promised, 59, 3.9, 0)), Not(HasSubstr("was meant")));
}

TEST(UnmetPlan, of_a_closed_loop_says_that_only_shorter_simulations_keep_the_limits) {
  ServingQuestion question = small_question();
  question.in_flight = 39;
  const std::string text = text_of(question, point_with(Effort::ranged, 50, 3, 14));
  EXPECT_THAT(text, HasSubstr("In shorter simulations"));
  EXPECT_THAT(text, HasSubstr("{find_max_concurrency}"));
  EXPECT_THAT(text, Not(HasSubstr("sustains")));
}

}  // namespace foretoken::unmet_plan_test
