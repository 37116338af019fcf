#include "report/comparison.h"

#include <gtest/gtest.h>

namespace foretoken::comparison_test {

Json train_answer(double seconds, double linear, double bubble) {
  return Json::object({{"seconds", Json::object({{"value", seconds}})},
                       {"parts_seconds", Json::object({{"linear", linear}, {"bubble", bubble}})}});
}

TEST(Comparison, parts_explain_the_difference_largest_first) {
  const Comparison found = compare_answers("train", train_answer(3, 2, 1), train_answer(2.5, 1.9, 0.6));
  ASSERT_EQ(found.parts.size(), 2U);
  EXPECT_EQ(found.parts.front().name, "bubble");
  EXPECT_NEAR(found.parts_difference(), -0.5, 1e-12);
  EXPECT_EQ(found.headlines.front().first, 3);
  EXPECT_NE(comparison_text(found).find("-16.7%"), std::string::npos);
}

TEST(Comparison, the_other_way_round_the_difference_changes_its_sign) {
  const Json a = train_answer(3, 2, 1), b = train_answer(2.5, 1.9, 0.6);
  EXPECT_NEAR(compare_answers("train", a, b).parts_difference(), -compare_answers("train", b, a).parts_difference(),
              1e-12);
}

TEST(Comparison, parts_that_only_one_has_are_nothing_in_the_other) {
  Json other = train_answer(2, 2, 0);
  other.set("parts_seconds", Json::object({{"linear", 2.0}, {"expert", 0.5}}));
  const Comparison found = compare_answers("train", train_answer(3, 2, 1), other);
  EXPECT_EQ(found.parts.size(), 3U);
  EXPECT_NEAR(found.parts_difference(), -0.5, 1e-12);
}

// Of 10 requests with 11 tokens each, whose decodes waited for one operator in batches of `batch`.
Json serve_answer(double tpot_ms, double step_s, double batch) {
  constexpr double tokens = 100;
  const double busy = step_s * tokens / batch;
  const Json own = Json::object({{"operator", "linear"}, {"seconds", busy}, {"decode_wait_seconds", busy * batch}});
  return Json::object({{"completed", 10},
                       {"total_output_tokens", 110},
                       {"mean_tpot_ms", tpot_ms},
                       {"breakdown", Json::object({{"operators", Json::array({own})}})}});
}

TEST(Comparison, parts_of_serving_runs_add_up_to_the_change_of_tpot_whatever_the_batch) {
  const Comparison found = compare_answers("serve", serve_answer(7.5, 0.007, 4), serve_answer(18, 0.017, 12));
  EXPECT_EQ(found.parts_of, "mean TPOT");
  EXPECT_NEAR(found.parts_difference(), 0.0105, 1e-12);
  ASSERT_EQ(found.parts.size(), 2U);
  EXPECT_EQ(found.parts.front().name, "linear");
  EXPECT_NEAR(found.parts.front().second - found.parts.front().first, 0.010, 1e-12);
  EXPECT_EQ(found.parts.back().name, "between steps");
}

Json plan_answer(const char* layout, double capacity) {
  const Json winner =
      Json::object({{"layout", layout},
                    {"devices", 2},
                    {"capacity_requests_per_s",
                     Json::object({{"value", capacity}, {"low", capacity - 2}, {"high", capacity + 2}})}});
  return Json::object({{"winner", winner}});
}

TEST(Comparison, searches_are_compared_by_what_their_winners_are_and_can_do) {
  const Comparison found = compare_answers("plan serve", plan_answer("TP1", 10), plan_answer("TP2", 13));
  EXPECT_EQ(found.outcomes.front().first, "TP1");
  EXPECT_EQ(found.outcomes.front().second, "TP2");
  EXPECT_TRUE(found.parts.empty());
  ASSERT_EQ(found.headlines.size(), 2U);  // devices, capacity
  EXPECT_EQ(found.headlines.back().second, 13);
  EXPECT_EQ(found.headlines.back().first_interval->most, 12);
  EXPECT_NE(comparison_text(found).find("layout: TP1 becomes TP2"), std::string::npos);
}

TEST(Comparison, a_search_that_found_nothing_is_said) {
  const Comparison found = compare_answers("plan serve", Json::object({{"winner", Json()}}), plan_answer("TP2", 13));
  EXPECT_TRUE(found.headlines.empty());
  EXPECT_NE(comparison_text(found).find("the two answers have no figure in common. layout: none becomes TP2"),
            std::string::npos);
}

TEST(Comparison, parts_of_a_step_add_up_to_it_where_work_runs_beside_other_work) {
  const auto step = [](double value) {
    const auto own = [](const char* name, double seconds) {
      return Json::object({{"name", name}, {"seconds", Json::object({{"value", seconds}})}});
    };
    return Json::object(
        {{"seconds", Json::object({{"value", value}})},
         {"stages",
          Json::array({Json::object({{"operators", Json::array({own("linear", 6.0), own("attention", 5.0)})}})})}});
  };
  const Comparison found = compare_answers("step", step(11), step(8));
  EXPECT_EQ(found.parts.front().name, "overlap");
  EXPECT_NEAR(found.parts_difference(), -3, 1e-12);
}

TEST(Comparison, intervals_that_overlap_are_said) {
  const auto step = [](double value) {
    return Json::object({{"seconds", Json::object({{"value", value}, {"low", value - 1}, {"high", value + 1}})},
                         {"stages", Json::array()}});
  };
  const auto said = [&](double second) {
    return comparison_text(compare_answers("step", step(10), step(second))).find("intervals overlap") !=
           std::string::npos;
  };
  EXPECT_TRUE(said(11.5));
  EXPECT_FALSE(said(12.5));
}

TEST(Comparison, an_answer_tells_whose_it_is) {
  EXPECT_EQ(command_of_answer(train_answer(3, 2, 1)), "train");
  EXPECT_EQ(command_of_answer(Json::object({{"mean_ttft_ms", Json()}})), "serve");
  EXPECT_EQ(command_of_answer(Json::object({{"command", "serve"}, {"model", "m"}})), std::nullopt) << "a question";
  EXPECT_EQ(command_of_answer(Json::array()), std::nullopt);
}

TEST(Comparison, equal_answers_say_that_nothing_changed) {
  const Json same = train_answer(3, 2, 1);
  EXPECT_NE(comparison_text(compare_answers("train", same, same)).find("no part of it changed"), std::string::npos);
}

}  // namespace foretoken::comparison_test
