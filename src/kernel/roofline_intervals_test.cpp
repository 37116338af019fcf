#include "kernel/roofline_intervals.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"

namespace foretoken::roofline_intervals_test {

// Ratios 1/100 step from `first` in one bin (roofline of 50 us).
std::vector<RooflineSample> samples(std::string_view device, double first, double step, int count,
                                    double roofline_us = 50) {
  std::vector<RooflineSample> result;
  for (int i = 0; i < count; ++i) {
    result.push_back({.device = device,
                      .measured_seconds = (first + step * i) * roofline_us * 1e-6,
                      .roofline_seconds = roofline_us * 1e-6});
  }
  return result;
}

TEST(RooflineIntervals, factors_are_the_central_90_percent) {
  const FamilyIntervals family = fit_family_intervals(samples("a", 0.5, 0.01, 101));
  EXPECT_NEAR(family.bins[2].low, 0.55, 1e-9);
  EXPECT_NEAR(family.bins[2].high, 1.45, 1e-9);
  EXPECT_EQ(family.bins[2].rows, 101);
}

TEST(RooflineIntervals, a_family_always_above_the_roofline_keeps_the_roofline_as_its_lower_end) {
  const FamilyIntervals family = fit_family_intervals(samples("a", 2, 0.01, 101));
  EXPECT_EQ(family.bins[2].low, 1);
  EXPECT_NEAR(family.bins[2].high, 2.9, 1e-9);
}

TEST(RooflineIntervals, a_bin_without_rows_borrows_from_its_neighbour) {
  const FamilyIntervals family = fit_family_intervals(samples("a", 1, 0.01, 101));
  for (const IntervalFactors& factors : family.bins) EXPECT_EQ(factors.high, family.bins[2].high);
  EXPECT_EQ(family.bins[0].rows, 0);
}

TEST(RooflineIntervals, coverage_is_reported_on_devices_left_out) {
  std::vector<RooflineSample> rows = samples("near", 1, 0.01, 101);
  const std::vector<RooflineSample> far = samples("far", 10, 0.01, 101);
  rows.insert(rows.end(), far.begin(), far.end());
  const FamilyIntervals family = fit_family_intervals(rows);
  EXPECT_EQ(family.left_out_coverage.at("far"), 0);
  // Fitted on `far`, low is 1 (the roofline) and high beyond all of `near`.
  EXPECT_EQ(family.left_out_coverage.at("near"), 100);
}

TEST(RooflineIntervals, a_family_without_measurements_gets_the_widest_factors) {
  RooflineIntervals intervals;
  intervals.families["a"] = fit_family_intervals(samples("a", 0.5, 0.01, 101));
  intervals.families["b"] = fit_family_intervals(samples("a", 1, 0.1, 101));
  intervals.other = widest_intervals(intervals.families);
  const IntervalFactors unknown = intervals.factors("c", 50e-6);
  EXPECT_EQ(unknown.low, intervals.factors("a", 50e-6).low);
  EXPECT_EQ(unknown.high, intervals.factors("b", 50e-6).high);
}

TEST(RooflineIntervals, what_is_written_reads_back) {
  RooflineIntervals intervals;
  intervals.source = "somewhere";
  intervals.devices = {"a"};
  intervals.families["gemm"] = fit_family_intervals(samples("a", 0.5, 0.01, 101));
  intervals.other = widest_intervals(intervals.families);
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "roofline_intervals.json";
  write_file(path, roofline_intervals_json(intervals));
  const RooflineIntervals read = read_roofline_intervals(path);
  EXPECT_EQ(roofline_intervals_json(read), roofline_intervals_json(intervals));
  write_file(path,
             R"({"source": "x", "fitted_on": "", "devices": [],
                      "families": {"gemm": {"rows": 1, "bins": []}}, "other": {}})");
  EXPECT_THROW(read_roofline_intervals(path), InputError);
}

TEST(RooflineIntervals, the_file_that_ships_covers_the_measured_families) {
  const RooflineIntervals intervals =
      read_roofline_intervals(FORETOKEN_SOURCE_DIR "/data/kernels/roofline_intervals.json");
  EXPECT_FALSE(intervals.source.empty());
  for (const char* family : {"gemm", "attention_prefill", "attention_decode", "moe", "quantize_fp8"}) {
    EXPECT_GT(intervals.factors(family, 1e-3).rows, 0) << family;
    EXPECT_LE(intervals.factors(family, 1e-3).high, intervals.factors(family, 1e-7).high) << family;
  }
  EXPECT_EQ(intervals.factors("conv", 1e-3).rows, 0);
}

}  // namespace foretoken::roofline_intervals_test
