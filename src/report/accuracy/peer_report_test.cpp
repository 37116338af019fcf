#include "report/accuracy/peer_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foretoken::peer_report_test {

using testing::HasSubstr;

TEST(PeerReport, errors_and_times_are_compared_and_what_is_missing_is_said) {
  const std::vector<PeerRun> runs = {{.name = "Calculon",
                                      .work = "a run",
                                      .found = "/opt/calculon",
                                      .own_seconds = 0.5,
                                      .peer_seconds = 5,
                                      .figures = {{.name = "a", .own = 9, .peer = 12, .measured = 10}}},
                                     {.name = "VIDUR", .compared_in = "docs/serving/checks.md"},
                                     {.name = "Timeloop", .found = "timeloop-model", .not_run = "no files"}};
  EXPECT_NEAR(peer_errors(runs[0])->own, 10, 1e-9);
  EXPECT_NEAR(peer_errors(runs[0])->peer, 20, 1e-9);
  EXPECT_NEAR(peer_difference(runs[0]).value(), 25, 1e-9);
  const std::string text = peers_text(runs);
  EXPECT_THAT(text, HasSubstr("10x"));
  EXPECT_THAT(text, HasSubstr("VIDUR: not found (compared in docs/serving/checks.md)"));
  EXPECT_THAT(text, HasSubstr("Timeloop: found (timeloop-model), not run: no files"));
  EXPECT_THAT(peers_json(runs).dump(0), HasSubstr("\"foretoken_mape\""));
}

TEST(PeerReport, figures_that_nobody_measured_are_compared_with_each_other) {
  const PeerRun run{.name = "Timeloop", .figures = {{.name = "cycles", .own = 11, .peer = 10}}};
  EXPECT_FALSE(peer_errors(run));
  EXPECT_NEAR(peer_difference(run).value(), 10, 1e-9);
}

}  // namespace foretoken::peer_report_test
