#include "report/plan/study_report.h"

#include <regex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foretoken::study_report_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// An answer of `plan serve` as a file has it; `high`: the upper end of what a million tokens cost.
Json answer_with(double usd, double low, const std::string& high) {
  const std::string value = Json(usd).dump(0);
  return parse_json(
      R"({"rate": 2, "winner": {"key": "k", "layout": "1 x TP1", "device": "h100_sxm", "engine": "vllm", "devices": 1,
        "capacity_requests_per_s": {"value": 4, "low": 0, "high": 6}, "run": {"usd_per_million_output_tokens": )" +
          value + R"(}}, "by_device_and_engine": [{"best": "k", "usd_per_million_output_tokens": {"value": )" + value +
          R"(, "low": )" + Json(low).dump(0) + R"(, "high": )" + high + "}}]}",
      "answer");
}

StudyCase case_on(const std::string& hardware) {
  return {.model = "m", .hardware = hardware, .traffic = "chat", .engines = "vllm", .question = Json::object()};
}

// A layout that may serve nothing at the bad end of its interval, and one that costs more at the good end of its own.
TEST(StudyReport, a_cost_without_an_upper_end_says_so_and_ties_with_all) {
  const Study study{.title = "Small", .cases = {case_on("1xA"), case_on("1xB")}};
  StudyReport report{.study = study, .rows = Json::array()};
  report.rows.push(study_row(study.cases[0], answer_with(1.3, 0.85, "null"), "command a"));
  report.rows.push(study_row(study.cases[1], answer_with(3, 2.5, "3.5"), "command b"));
  EXPECT_THAT(study_text(report),
              AllOf(HasSubstr("1.3 (0.85 or more)"), HasSubstr("3 (2.5-3.5)"), Not(HasSubstr("--)"))));
  EXPECT_EQ(study_json(report).find("best")->items().at(0).find("tied")->items().size(), 1U);

  const std::string html = study_html(report, "foretoken study small.yaml");
  EXPECT_THAT(html, HasSubstr("1.3 (0.85 or more)"));
  const std::regex interval(R"re(<line x1="([0-9.]+)" y1="[0-9.]+" x2="([0-9.]+)"[^>]*#7b8794)re");
  std::smatch ends;
  ASSERT_TRUE(std::regex_search(html, ends, interval));
  EXPECT_LT(std::stod(ends[1]), std::stod(ends[2]));
  EXPECT_EQ(std::stod(ends[2]), 920) << "to the right edge";
}

TEST(StudyReport, a_cost_without_an_interval_is_a_number) {
  const Study study{.title = "Small", .cases = {case_on("1xA")}};
  StudyReport report{.study = study, .rows = Json::array()};
  report.rows.push(study_row(study.cases[0], answer_with(1.3, 1.3, "1.3"), "command"));
  EXPECT_THAT(study_text(report), AllOf(HasSubstr(" 1.3 "), Not(HasSubstr("1.3 ("))));
}

}  // namespace foretoken::study_report_test
