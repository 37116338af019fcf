#include "plan/suite/suite_score.h"

#include <gtest/gtest.h>

namespace foretoken::suite_score_test {

SuiteCard measured_card(const std::string& id, double measured, double size) {
  return {.id = id,
          .group = "survey",
          .measured = MeasuredFigure{.value = measured, .source = "a paper"},
          .scaling = ScalingPlace{.family = "one", .size = size}};
}

const std::vector<SuiteCard> three_sizes = {measured_card("a", 1, 8), measured_card("b", 2, 16),
                                            measured_card("c", 4, 32)};

double score_of(const SuiteScore& score, const std::string& name) {
  for (const DimensionScore& dimension : score.dimensions) {
    if (dimension.name == name) return dimension.score.value_or(-1);
  }
  return -2;
}

std::vector<SuiteAnswer> answers_off_by(double factor) {
  std::vector<SuiteAnswer> answers;
  for (const SuiteCard& card : three_sizes) answers.push_back({.id = card.id, .value = card.measured->value * factor});
  return answers;
}

TEST(SuiteScore, fidelity_falls_as_answers_go_wrong) {
  double last = 101;
  for (const double factor : {1.0, 1.1, 1.3, 2.0}) {
    const double now = score_of(score_answers(three_sizes, answers_off_by(factor), {}), "fidelity");
    EXPECT_LT(now, last);
    last = now;
  }
}

TEST(SuiteScore, a_common_factor_leaves_scaling_alone) {
  const SuiteScore score = score_answers(three_sizes, answers_off_by(1.5), {});
  EXPECT_NEAR(score.scaling_error.value(), 0, 1e-9);
  EXPECT_NEAR(score.errors.mape, 50, 1e-9);
}

TEST(SuiteScore, what_is_not_answered_is_not_covered) {
  const SuiteScore score = score_answers(three_sizes, std::vector<SuiteAnswer>{{.id = "b", .value = 2}}, {});
  EXPECT_EQ(score.answered, 1U);
  EXPECT_EQ(score.survey_scenarios, 3U);
  EXPECT_LT(score_of(score, "extensibility"),
            score_of(score_answers(three_sizes, answers_off_by(1), {}), "extensibility"));
}

TEST(SuiteScore, dimensions_without_figures_have_no_score) {
  const SuiteScore score = score_answers(three_sizes, {}, {});
  for (const std::string name : {"fidelity", "composition", "generalisation", "deployment"}) {
    EXPECT_EQ(score_of(score, name), -1) << name;
  }
}

TEST(SuiteScore, intervals_that_hold_everything_are_not_perfect) {
  std::vector<SuiteAnswer> wide = answers_off_by(1);
  for (SuiteAnswer& answer : wide) {
    answer.low = 0;
    answer.high = 1e9;
  }
  EXPECT_LT(score_of(score_answers(three_sizes, wide, {}), "fidelity"), 100);
}

}  // namespace foretoken::suite_score_test
