#include "plan/serving/serving_planner.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "serving/test_support.h"

namespace foretoken::serving_planner_test {

// A search that is stopped while it is at the second of two devices.
ServingSearchResult stopped_at_second(double requests_per_s) {
  const Library library(FORETOKEN_SOURCE_DIR "/data");
  bool is_wanted = true;
  ServingPlanner planner{
      .library = library,
      .question = {.model = library.models().model("Llama-3.1-8B"),
                   .slos = parse_slos("ttft<2s,tpot<100ms", "slo"),
                   .rate = requests_per_s,
                   .objective = PlanObjective::cost,
                   .hardware = {hardware_choice(library, "l4", 1, 1), hardware_choice(library, "h100_sxm", 1, 3)},
                   .choices = {.pipeline = {1}},
                   .drafts = {}},
      .traffic = Traffic(random_requests(3, 400, 10, 600, 60)),
      .limits = {.quick = 2, .full = 1},
      .tell = [&](const std::string& text) { is_wanted = is_wanted && !text.starts_with("h100_sxm"); },
      .check_wanted = [&] { return is_wanted ? void() : throw SearchStopped(); }};
  return planner.search();
}

const PlanPoint* point_of(const ServingSearchResult& result, const std::string& device) {
  const auto found = std::find_if(result.points.begin(), result.points.end(), [&](const PlanPoint& point) {
    return point.layout.pool.engine.device == device && point.capacity.value > 0;
  });
  return found == result.points.end() ? nullptr : &*found;
}

TEST(ServingPlanner, devices_that_a_stopped_search_did_not_reach_have_a_row_by_closed_form) {
  const ServingSearchResult result = stopped_at_second(0.5);
  EXPECT_TRUE(result.stopped);
  ASSERT_EQ(result.tried.size(), 2U);
  ASSERT_NE(result.winner(), nullptr);
  EXPECT_EQ(result.winner()->layout.pool.engine.device, "l4");
  EXPECT_EQ(result.winner()->effort, Effort::promised);
  const PlanPoint* unreached = point_of(result, "h100_sxm");
  ASSERT_NE(unreached, nullptr);
  EXPECT_EQ(unreached->effort, Effort::closed_form);
  EXPECT_LT(unreached->capacity.low, unreached->capacity.high);
}

TEST(ServingPlanner, where_only_an_unreached_device_may_serve_the_rate_it_is_the_answer) {
  const ServingSearchResult result = stopped_at_second(10);
  ASSERT_NE(result.winner(), nullptr);
  EXPECT_EQ(result.winner()->layout.pool.engine.device, "h100_sxm");
  EXPECT_EQ(result.winner()->effort, Effort::closed_form);
}

}  // namespace foretoken::serving_planner_test
