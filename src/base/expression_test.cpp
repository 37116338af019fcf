#include "base/expression.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken::expression_test {

double value(std::string_view text, double x = 0) {
  return Expression::parse(text, "rules.json", "when.if").value([x](std::string_view name) -> std::optional<double> {
    return name == "x" ? std::optional(x) : std::nullopt;
  });
}

std::string complaint(std::string_view text) {
  try {
    value(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Expression, products_bind_before_sums_and_both_before_comparisons) {
  EXPECT_EQ(value("1 + 2 * 3"), 7);
  EXPECT_EQ(value("(1 + 2) * 3"), 9);
  EXPECT_EQ(value("8 / 4 / 2"), 1);
  EXPECT_EQ(value("8 - 4 - 2"), 2);
  EXPECT_EQ(value("1 + 1 = 2 and 3 < 2 or 2 <= 2"), 1);
  EXPECT_EQ(value("3 < 2 or 2 < 3 and 3 < 2"), 0);
}

TEST(Expression, a_minus_sign_negates_what_follows) {
  EXPECT_EQ(value("-x + 1", 3), -2);
  EXPECT_EQ(value("2 * -x", 3), -6);
}

TEST(Expression, functions_take_expressions) {
  EXPECT_EQ(value("ceil(x / 8) * 8", 9), 16);
  EXPECT_EQ(value("min(x, 2 + 3)", 9), 5);
  EXPECT_EQ(value("max(min(x, 4), 1)", 9), 4);
}

TEST(Expression, a_name_that_starts_with_a_word_is_a_name) {
  const Expression order = Expression::parse("order", "rules.json", "when.if");
  EXPECT_EQ(order.value([](std::string_view name) { return name == "order" ? std::optional(5.0) : std::nullopt; }), 5);
}

TEST(Expression, a_constant_is_its_number) {
  EXPECT_EQ(Expression::constant(2.5).value({}), 2.5);
  EXPECT_EQ(Expression::constant(2.5).text(), "2.5");
  EXPECT_EQ(Expression().value({}), 0);
}

TEST(Expression, a_mistake_is_told_with_file_path_and_position) {
  const std::string text = complaint("1 + ");
  EXPECT_NE(text.find("rules.json"), std::string::npos) << text;
  EXPECT_NE(text.find("when.if"), std::string::npos) << text;
  EXPECT_NE(text.find("at character 5"), std::string::npos) << text;
  for (const char* wrong : {"", "1 2", "(1", "1)", "min(1)", "floor(1)", "1 +* 2", "1..2", "x y", "$"}) {
    EXPECT_NE(complaint(wrong), "") << wrong;
  }
}

TEST(Expression, an_unknown_name_and_a_division_by_zero_are_told_when_the_value_is_asked_for) {
  EXPECT_NE(complaint("rows").find("rows"), std::string::npos);
  EXPECT_NE(complaint("1 / x").find("zero"), std::string::npos);
}

TEST(Expression, length_and_depth_are_bounded) {
  EXPECT_NE(complaint(std::string(501, '1')), "");
  EXPECT_NE(complaint(std::string(100, '(') + "1" + std::string(100, ')')), "");
  EXPECT_NE(complaint(std::string(200, '-') + "1"), "");
  EXPECT_EQ(value(std::string(20, '(') + "1" + std::string(20, ')')), 1);
}

TEST(Expression, the_longest_expression_that_reads_has_a_value) {
  std::string sum = "x";
  while (sum.size() + 2 <= 500) sum += "+x";
  EXPECT_EQ(value(sum, 1), static_cast<double>((sum.size() + 1) / 2));
}

}  // namespace foretoken::expression_test
