#include "report/accuracy/validation_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken::validation_history_test {

using testing::HasSubstr;

ValidationRun run_with(double mape) {
  ValidationRun run{.date = "2026-11-17", .version = "0.2.0"};
  run.checks.push_back(
      {.errors =
           {.name = "steps", .rows = 12, .mape = mape, .median_ape = 2, .p90_ape = 7, .bias = -1, .coverage90 = 91},
       .command = "foretoken validate steps --data steps.csv"});
  run.checks.push_back({.errors = {.name = "serving"}, .command = "foretoken validate serving", .skipped = "no data"});
  return run;
}

TEST(ValidationHistory, a_run_is_read_again_and_compared) {
  ValidationRun now = run_with(4.5);
  now.history = parse_validation_history(validation_history_line(run_with(3)), "history");
  ASSERT_EQ(now.history.size(), 1U);
  ASSERT_EQ(now.history[0].checks.size(), 1U);
  EXPECT_EQ(now.history[0].checks[0].coverage90, 91);
  EXPECT_THAT(validation_run_text(now), HasSubstr("+1.5"));
  EXPECT_THAT(validation_run_text(now), HasSubstr("since 2026-11-17: 0 better, 1 worse"));
  EXPECT_THAT(validation_run_text(now), HasSubstr("Not run (no data): serving."));
  EXPECT_THAT(validation_run_html(now), HasSubstr("Earlier runs"));
  EXPECT_THAT(validation_run_json(now).dump(), HasSubstr("\"mape_before\": 3"));
}

TEST(ValidationHistory, other_rows_are_not_compared) {
  ValidationRun before = run_with(3), now = run_with(5);
  before.checks[0].errors.rows = 20;
  now.history = parse_validation_history(validation_history_line(before), "history");
  EXPECT_THAT(validation_run_text(now), HasSubstr("3.0 on 20 rows"));
  EXPECT_THAT(validation_run_text(now), HasSubstr("0 better, 0 worse"));
}

TEST(ValidationHistory, damaged_lines_are_refused_with_their_place) {
  for (const char* text :
       {"{", "{\"date\": 3}", "[]", "{\"date\":\"d\",\"version\":\"v\",\"checks\":[{\"name\":\"a\"}]}"}) {
    EXPECT_THROW(parse_validation_history(text, "history"), InputError) << text;
  }
  EXPECT_TRUE(parse_validation_history("", "history").empty());
}

}  // namespace foretoken::validation_history_test
