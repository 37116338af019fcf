#include "base/validation.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken::validation_test {

TEST(ValidationTally, groups_come_by_name_and_all_rows_make_the_overall_error) {
  ValidationTally tally(20);
  tally.add("b", {.measured = 10, .predicted = 11, .low = 9, .high = 12}, 0.5);
  tally.add("a", {.measured = 100, .predicted = 80, .low = 70, .high = 90}, 1.5);
  Validation validation{.notes = {"kept"}};
  tally.write(validation);
  ASSERT_EQ(validation.groups.size(), 2U);
  EXPECT_EQ(validation.groups[0].name, "a");
  EXPECT_EQ(validation.overall.n, 2U);
  EXPECT_NEAR(validation.overall.mape, 15, 1e-9);
  EXPECT_NEAR(validation.mape_20us.value(), 20, 1e-9);  // the short row does not count
  EXPECT_FALSE(validation.groups[1].mape_20us.has_value()) << "no long row, which is not an error of zero";
  EXPECT_NEAR(validation.seconds_per_1000_rows, 1000, 1e-9);
  EXPECT_EQ(validation.notes.size(), 1U);
}

TEST(Grouping, of_other_rows_is_refused_with_those_there_are) {
  EXPECT_NO_THROW(check_grouping("", {"system", "size"}, "collectives"));
  EXPECT_NO_THROW(check_grouping("size", {"system", "size"}, "collectives"));
  try {
    check_grouping("role", {"system", "size"}, "collectives");
    ADD_FAILURE() << "taken";
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().field, "group_by");
    EXPECT_EQ(error.problem().expected, "one of system, size (for collectives)");
  }
}

TEST(ValidationTally, nothing_added_gives_empty_results_rather_than_a_division_by_zero) {
  Validation validation;
  ValidationTally(20).write(validation);
  EXPECT_EQ(validation.overall.n, 0U);
  EXPECT_EQ(validation.seconds_per_1000_rows, 0);
}

}  // namespace foretoken::validation_test
