#include "report/network/collective_report.h"

#include <sstream>

#include <gtest/gtest.h>

#include "base/error.h"
#include "network/test_clusters.h"
#include "report/network/collective_plot.h"

namespace foretoken::collective_report_test {

CollectiveReport report_of(const std::vector<double>& sizes) {
  const CollectiveOptions options{.fidelity = Fidelity::flow, .reports_links = true};
  const CollectiveModel model(test_cluster({}), options);
  CollectiveReport report{.machine = model.name(), .group = "32 ranks", .ranks = 32, .options = options};
  for (const double bytes : sizes) {
    report.rows.push_back(
        {.bytes = bytes, .estimate = model.estimate({.bytes = bytes, .group = ProcessGroup::strided(0, 32)})});
  }
  return report;
}

TEST(CollectiveReport, fits_a_hundred_columns) {
  std::istringstream lines(collective_text(report_of({1024, 1e6, 1e9})));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
}

TEST(CollectiveReport, says_once_why_for_sizes_with_the_same_choice) {
  const std::string text = collective_text(report_of({1, 2, 4}));
  EXPECT_NE(text.find("1 B to 4 B: "), std::string::npos) << text;
}

TEST(CollectiveReport, has_the_links_of_every_row_in_json_and_the_busiest_of_the_last_in_text) {
  const CollectiveReport report = report_of({1e6, 1e9});
  const Json json = collective_json(report);
  const std::vector<JsonView> rows = JsonView(json, "report").at("rows").items();
  ASSERT_EQ(rows.size(), report.rows.size());
  for (size_t r = 0; r < rows.size(); ++r) {
    EXPECT_FALSE(report.rows[r].estimate.links.empty());
    EXPECT_EQ(rows[r].at("links").items().size(), report.rows[r].estimate.links.size());
  }
  EXPECT_NE(collective_text(report).find("the busiest 12 of"), std::string::npos);
}

TEST(CollectivePlot, draws_a_line_through_two_sizes_or_more) {
  EXPECT_NE(collective_plot(report_of({1e6, 1e9})).find("<polyline"), std::string::npos);
  EXPECT_THROW(collective_plot(report_of({1e6})), InputError);
  EXPECT_THROW(collective_plot(report_of({0, 0})), InputError);
}

}  // namespace foretoken::collective_report_test
