#include "network/calibration/fit_communication.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "base/error.h"
#include "network/calibration/test_systems.h"

namespace foretoken::fit_communication_test {

using test_support::made_up_rows;

class FitCommunicationTest : public testing::Test {
 protected:
  const SystemLibrary systems{test_support::catalogue()};
  const CommunicationRows rows =
      made_up_rows({{"a100_sxm", 8}, {"b200_sxm", 8}, {"h100_sxm", 6}, {"h200_sxm", 6.05}}, systems);
  const CommunicationFitOptions options{.source = "made up", .date = "2026-11-15"};
};

TEST_F(FitCommunicationTest, finds_a_law_that_is_there_and_ports_it_to_a_generation_it_has_not_seen) {
  const CommunicationFit fit = fit_communication(rows, systems, options);
  ASSERT_EQ(fit.summary.entries.size(), 4U);
  for (const auto& entry : fit.summary.entries) {
    EXPECT_LT(entry.held_out.mape, 4) << entry.system;
    EXPECT_GT(entry.withheld.n, 0U) << entry.system;
    EXPECT_LT(entry.withheld.mape, 25) << entry.system;  // launches differ by a third
  }
  EXPECT_LT(fit.library.laws.at("nccl").sibling_mape.at("h100_sxm"), 1);
}

TEST_F(FitCommunicationTest, the_latency_that_was_given_is_not_scored) {
  CommunicationRows reduces = rows;
  for (CommunicationRow& row : reduces.rows) row.call.operation = "all_reduce";
  const CommunicationFit fit = fit_communication(reduces, systems, options);
  for (const auto& entry : fit.summary.entries) EXPECT_EQ(entry.told.n + 1, entry.withheld.n) << entry.system;
}

TEST_F(FitCommunicationTest, coverage_of_a_system_is_its_own_and_not_that_of_its_generation) {
  const CommunicationRows apart =
      made_up_rows({{"a100_sxm", 8}, {"b200_sxm", 8}, {"h100_sxm", 8}, {"h200_sxm", 60}}, systems);
  const CommunicationFit fit = fit_communication(apart, systems, options);
  std::map<std::string, ErrorSummary> withheld;
  for (const auto& entry : fit.summary.entries) withheld[entry.system] = entry.withheld;
  const ErrorSummary &near = withheld["h100_sxm"], &far = withheld["h200_sxm"];
  EXPECT_GT(near.coverage90, far.coverage90 + 10);
  ASSERT_EQ(near.n, far.n);
  EXPECT_NEAR((near.coverage90 + far.coverage90) / 2, fit.library.laws.at("nccl").withheld_coverage.at("sm_90"), 1e-9);
}

TEST_F(FitCommunicationTest, what_is_left_out_leaves_no_trace_in_the_calibrations) {
  CommunicationFitOptions without = options;
  without.without = {"h100_sxm"};  // and its generation
  const CommunicationFit fit = fit_communication(rows, systems, without);
  EXPECT_EQ(fit.library.sweeps.size(), 2U);
  for (const auto& [name, offsets] : fit.library.laws.at("nccl").effects)
    EXPECT_EQ(name.find("h200"), std::string::npos) << name;
  without = options;
  without.without_ranks = {8};
  without.without_sizes = {1024};
  const CommunicationFit fewer = fit_communication(rows, systems, without);
  for (const auto& [key, sweep] : fewer.library.sweeps) {
    for (const auto& [series, curves] : sweep.series) {
      EXPECT_NE(series.second, 8);
      EXPECT_GT(curves.common.x.front(), 10);
    }
  }
}

TEST_F(FitCommunicationTest, the_same_rows_give_the_same_files_and_the_files_predict_as_the_fit_did) {
  const CommunicationFit fit = fit_communication(rows, systems, options);
  const CommunicationFit again = fit_communication(rows, systems, options);
  EXPECT_EQ(calibration_json(fit.library.laws.at("nccl")), calibration_json(again.library.laws.at("nccl")));
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "fit_communication_test";
  EXPECT_EQ(write_communication_library(fit.library, folder), 5U);
  const auto read = std::make_shared<const CommunicationLibrary>(read_communication_library(folder));
  const auto kept = std::make_shared<const CommunicationLibrary>(fit.library);
  for (const CommunicationRow& row : rows.rows) {
    const CommunicationPredictor one(kept, systems.traits(row.device), {}), other(read, systems.traits(row.device), {});
    EXPECT_NEAR(one.estimate(row.call)->seconds.value / other.estimate(row.call)->seconds.value, 1, 1e-3);
  }
  std::filesystem::remove_all(folder);
}

TEST_F(FitCommunicationTest, nothing_to_fit_is_an_input_error) {
  EXPECT_THROW(fit_communication({}, systems, options), InputError);
}

TEST_F(FitCommunicationTest, one_small_message_is_that_of_four_kilobytes_among_four) {
  CommunicationRows own;
  for (const CommunicationRow& row : rows.rows) {
    if (row.device != "a100_sxm") continue;
    own.rows.push_back(row);
    own.rows.back().call.operation = "all_reduce";
  }
  std::vector<const CommunicationRow*> pointers;
  for (const CommunicationRow& row : own.rows) pointers.push_back(&row);
  const auto small = small_message_of(pointers);
  ASSERT_TRUE(small.has_value());
  EXPECT_EQ(small->call.ranks, 4);
  EXPECT_EQ(small->call.bytes, 4096);
  EXPECT_FALSE(small_message_of({}).has_value());
}

}  // namespace foretoken::fit_communication_test
