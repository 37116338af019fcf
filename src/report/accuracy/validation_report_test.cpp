#include "report/accuracy/validation_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foretoken::validation_report_test {

using testing::HasSubstr;
using testing::Not;

Validation one_group(bool has_intervals) {
  const ErrorSummary errors{.n = 3, .mape = 4, .coverage90 = 77.7};
  return {.overall = errors, .has_intervals = has_intervals, .groups = {{.name = "e2e_ms", .errors = errors}}};
}

TEST(ValidationReport, coverage_is_left_out_where_predictions_have_no_intervals) {
  EXPECT_THAT(validation_text(one_group(true)), HasSubstr("77.7"));
  EXPECT_THAT(validation_text(one_group(false)), Not(HasSubstr("77.7")));
  EXPECT_THAT(validation_json(one_group(true), "serving").dump(0), HasSubstr(R"("coverage90":77.7)"));
  EXPECT_THAT(validation_json(one_group(false), "serving").dump(0), HasSubstr(R"("coverage90":null)"));
}

TEST(ValidationReport, a_group_without_rows_has_no_figures) {
  Validation validation = one_group(true);
  validation.groups.push_back({.name = "nobody", .errors = {}});
  EXPECT_THAT(validation_text(validation), testing::ContainsRegex("nobody +0 +- +-"));
  EXPECT_THAT(validation_json(validation, "serving").dump(0), HasSubstr(R"("name":"nobody","n":0,"mape":null)"));
}

}  // namespace foretoken::validation_report_test
