#include "plan/suite/suite_score.h"

#include <gtest/gtest.h>

#include "base/error.h"

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

SuiteAnswer measured_case(const std::string& id, SuiteLevel level, double measured, double factor) {
  return {.id = id, .value = measured * factor, .level = level, .group = "ms", .measured = measured};
}

// A tool with three cases on each level, all off by a factor.
std::vector<SuiteAnswer> levels_off_by(double kernels, double models, double systems) {
  std::vector<SuiteAnswer> answers;
  for (const double measured : {1.0, 2.0, 3.0}) {
    const std::string name = std::to_string(measured);
    answers.push_back(measured_case("k" + name, SuiteLevel::kernel, measured, kernels));
    answers.push_back(measured_case("m" + name, SuiteLevel::model, measured, models));
    answers.push_back(measured_case("s" + name, SuiteLevel::system, measured, systems));
  }
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
  EXPECT_NEAR(score.mape.value(), 50, 1e-9);
}

TEST(SuiteScore, one_bad_answer_shows_in_the_maximum_error) {
  std::vector<SuiteAnswer> answers = answers_off_by(1);
  answers[2].value *= 3;
  const SuiteScore score = score_answers(three_sizes, answers, {});
  EXPECT_NEAR(score.maximum_error.value(), 200, 1e-9);
  EXPECT_LT(score_of(score, "fidelity"), score_of(score_answers(three_sizes, answers_off_by(1), {}), "fidelity"));
}

TEST(SuiteScore, what_is_not_answered_is_not_covered) {
  const SuiteScore score = score_answers(three_sizes, std::vector<SuiteAnswer>{{.id = "b", .value = 2}}, {});
  EXPECT_EQ(score.answered, 1U);
  EXPECT_EQ(score.survey_scenarios, 3U);
  EXPECT_LT(score_of(score, "extensibility"),
            score_of(score_answers(three_sizes, answers_off_by(1), {}), "extensibility"));
}

TEST(SuiteScore, dimensions_without_figures_have_no_score_and_add_nothing_to_the_total) {
  const SuiteScore score = score_answers(three_sizes, {}, {});
  for (const std::string name : {"fidelity", "composition", "generalization", "deployment"}) {
    EXPECT_EQ(score_of(score, name), -1) << name;
  }
  EXPECT_EQ(score.total, 0);
  EXPECT_EQ(score.assessed_weight, 10);
}

TEST(SuiteScore, intervals_that_hold_everything_are_not_perfect) {
  std::vector<SuiteAnswer> wide = answers_off_by(1);
  for (SuiteAnswer& answer : wide) {
    answer.low = 0;
    answer.high = 1e9;
  }
  EXPECT_LT(score_of(score_answers(three_sizes, wide, {}), "fidelity"), 100);
}

TEST(SuiteScore, broken_kernels_score_low_in_composition_even_where_models_look_right) {
  const double good = score_of(score_answers({}, levels_off_by(1.03, 1.04, 1.05), {}), "composition");
  EXPECT_GT(good, 80);
  EXPECT_LT(score_of(score_answers({}, levels_off_by(1.5, 1.0, 1.0), {}), "composition"), 5);
  EXPECT_LT(score_of(score_answers({}, levels_off_by(1.5, 1.5, 1.5), {}), "composition"), 5);
}

TEST(SuiteScore, errors_that_appear_between_kernels_and_models_lower_composition) {
  const SuiteScore lost = score_answers({}, levels_off_by(1.03, 1.13, 1.13), {});
  EXPECT_NEAR(lost.model_gap.value(), 10, 1e-6);
  EXPECT_NEAR(lost.system_gap.value(), 0, 1e-6);
  EXPECT_LT(score_of(lost, "composition"),
            score_of(score_answers({}, levels_off_by(1.03, 1.03, 1.03), {}), "composition"));
}

TEST(SuiteScore, the_error_of_a_whole_is_split_into_that_of_its_parts_and_the_rest) {
  std::vector<SuiteAnswer> answers = {measured_case("step", SuiteLevel::model, 10, 1.3),
                                      measured_case("gemm", SuiteLevel::kernel, 4, 1.25),
                                      measured_case("attention", SuiteLevel::kernel, 4, 1.0)};
  answers[1].part_of = answers[2].part_of = "step";
  const GapAttribution split = score_answers({}, answers, {}).attribution.value();
  EXPECT_EQ(split.cases, 1U);
  EXPECT_NEAR(split.total_error, 30, 1e-9);
  EXPECT_NEAR(split.from_parts, 10, 1e-9);  // 1 of 10
  EXPECT_NEAR(split.from_composition, 20, 1e-9);
}

TEST(SuiteScore, kernel_errors_that_the_rest_cancels_are_charged_to_composition) {
  std::vector<SuiteAnswer> answers = {measured_case("step", SuiteLevel::model, 10, 1.0),
                                      measured_case("gemm", SuiteLevel::kernel, 8, 1.4)};
  answers[1].part_of = "step";
  const SuiteScore score = score_answers({}, answers, {});
  EXPECT_NEAR(score.model_gap.value(), 32, 1e-9);
  EXPECT_EQ(score_of(score, "composition"), 0);
}

TEST(SuiteScore, generalization_needs_every_kind_of_withheld_cases_for_a_full_score) {
  std::vector<SuiteAnswer> answers = levels_off_by(1.02, 1.02, 1.02);
  answers[0].withheld = {Withheld::hardware};
  const SuiteScore one = score_answers({}, answers, {});
  EXPECT_LE(score_of(one, "generalization"), 25);
  EXPECT_EQ(one.withheld.at(Withheld::hardware).errors.n, 1U);
  answers[1].withheld = {Withheld::model, Withheld::workload};
  answers[2].withheld = {Withheld::time};
  EXPECT_GT(score_of(score_answers({}, answers, {}), "generalization"), 90);
  answers[2].value *= 2;
  EXPECT_LT(score_of(score_answers({}, answers, {}), "generalization"), 80);
}

TEST(SuiteScore, a_tool_that_is_half_off_everywhere_has_generalized_nothing) {
  const auto withheld_off_by = [](double factor) {
    std::vector<SuiteAnswer> answers = levels_off_by(factor, factor, factor);
    answers[0].withheld = {Withheld::hardware};
    answers[1].withheld = {Withheld::model};
    answers[2].withheld = {Withheld::workload, Withheld::time};
    return score_of(score_answers({}, answers, {}), "generalization");
  };
  EXPECT_LT(withheld_off_by(1.5), 0.1);  // its error does not grow, and is worthless all the same
  EXPECT_NEAR(withheld_off_by(1.25), 50, 0.1);
  EXPECT_GT(withheld_off_by(1.02), 95);
}

TEST(SuiteScore, the_total_is_weighted_40_20_20_10_10) {
  const SuiteScore score = score_answers(three_sizes, answers_off_by(1.1), {.install_commands = 1});
  double sum = 0, weights = 0;
  for (const DimensionScore& dimension : score.dimensions) {
    weights += dimension.weight;
    sum += dimension.weight * dimension.score.value_or(0) / 100;
  }
  EXPECT_EQ(weights, 100);
  EXPECT_EQ(score.dimensions[0].weight, 40);
  EXPECT_EQ(score.dimensions[3].weight, 10);
  EXPECT_NEAR(score.total, sum, 1e-9);
  EXPECT_EQ(score.assessed_weight, 60);
}

TEST(SuiteScore, one_known_fact_does_not_make_a_tool_easy_to_deploy) {
  EXPECT_EQ(score_of(score_answers(three_sizes, {}, {.needs_gpu = false}), "deployment"), 20);
}

TEST(SuiteScore, two_tools_are_compared_on_the_cases_of_both) {
  std::vector<SuiteAnswer> other = answers_off_by(1.2);
  other.pop_back();
  const CommonCases common = common_cases(three_sizes, answers_off_by(1.1), other);
  EXPECT_EQ(common.cases, 2U);
  EXPECT_NEAR(common.mape, 10, 1e-9);
  EXPECT_NEAR(common.other_mape, 20, 1e-9);
}

TEST(ToolFacts, misspelt_and_declared_errors_are_refused) {
  Json document = Json::object({{"name", "a"}, {"source", "b"}, {"kernel_mape", 3.0}});
  EXPECT_THROW(read_tool_facts(JsonView(document, "tool.json")), InputError);
}

}  // namespace foretoken::suite_score_test
