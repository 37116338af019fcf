#include "network/calibration/communication_calibration.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "network/calibration/test_systems.h"

namespace foretoken::communication_calibration_test {

LawCalibration some_law() {
  LawCalibration law{.law = "nccl", .source = "test", .fitted_on = "2026-11-15", .systems = {"h100_sxm"}};
  for (const LawConstant& constant : find_law("nccl")->law->constants()) law.constants.emplace_back(constant.name);
  law.effects["common"] = std::vector<double>(law.constants.size(), 0.25);
  law.effects["system h100_sxm"] = std::vector<double>(law.constants.size(), -0.5);
  law.curves["all_gather"][4] = {.x = {0, 1, 20}, .y = {0, 0.5, 10}};
  law.sibling_half_widths = HalfWidths{.by_time = {0.1, 0.1, 0.2, 0.2, 0.1}};
  return law;
}

SweepCalibration some_sweep() {
  SweepCalibration sweep{.law = "nccl", .system = "h100_sxm", .source = "test", .fitted_on = "2026-11-15", .rows = 12};
  SweepSeries& four = sweep.series[{"all_gather", 4}];
  four.common = {.x = {10, 20}, .y = {0.2, 0.4}};
  four.variants["2.27.3 half"] = {.x = {12}, .y = {0.1}};
  four.variants["2.23 half"] = {.x = {12}, .y = {-0.1}};
  sweep.series[{"all_gather", 8}].common = {.x = {10, 20}, .y = {0.6, 0.8}};
  return sweep;
}

CommunicationCall gather(int64_t ranks, double bytes, const char* variant) {
  return {.law = "nccl", .operation = "all_gather", .variant = variant, .ranks = ranks, .bytes = bytes};
}

TEST(CommunicationCalibration, reads_back_what_was_written) {
  const std::string law = calibration_json(some_law()), sweep = calibration_json(some_sweep());
  EXPECT_EQ(calibration_json(parse_law_calibration(law, "law")), law);
  EXPECT_EQ(calibration_json(parse_sweep_calibration(sweep, "sweep")), sweep);
}

TEST(CommunicationCalibration, a_changed_number_a_newer_version_and_an_unknown_law_are_input_errors) {
  const std::string text = calibration_json(some_sweep());
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    return changed;
  };
  EXPECT_THROW(parse_sweep_calibration(with("0.4", "0.5"), "t"), InputError);
  EXPECT_THROW(parse_sweep_calibration(with("\"version\": 1", "\"version\": 2"), "t"), InputError);
  EXPECT_THROW(parse_sweep_calibration(with("\"nccl\"", "\"ncll\""), "t"), InputError);
  EXPECT_THROW(parse_law_calibration(text, "t"), InputError);  // another kind of file
  EXPECT_THROW(parse_sweep_calibration(text.substr(0, text.size() / 2), "t"), InputError);
}

TEST(CommunicationCalibration, constants_are_the_product_of_their_effects_within_bounds) {
  const CommunicationLaw& law = *find_law("nccl")->law;
  const LawCalibration calibration = some_law();
  EXPECT_NEAR(law_constants(law, calibration, "all_gather", "")[0], std::exp(0.25), 1e-12);
  // below what a launch can be: held at the bound
  EXPECT_EQ(law_constants(law, calibration, "all_gather", "h100_sxm")[0], law.constants()[0].least);
}

TEST(CommunicationCalibration, a_leftover_adds_the_common_curve_and_the_nearest_variant) {
  const SweepCalibration sweep = some_sweep();
  const auto known = leftover_of(sweep, gather(4, 1024, "2.27.3 half"));
  EXPECT_NEAR(known->log_factor, 0.3, 1e-9);
  EXPECT_TRUE(known->inside);
  const auto newer = leftover_of(sweep, gather(4, 1024, "2.28.9 half"));
  EXPECT_NEAR(newer->log_factor, 0.3, 1e-9);
  EXPECT_FALSE(newer->inside);
  EXPECT_TRUE(leftover_of(sweep, gather(4, 1024, "half"))->inside);  // the newest
  EXPECT_FALSE(leftover_of(sweep, gather(4, 1e9, "half"))->inside);
}

TEST(CommunicationCalibration, other_rank_counts_lie_between_the_swept_ones_and_unswept_series_have_no_leftover) {
  const SweepCalibration sweep = some_sweep();
  const auto six = leftover_of(sweep, gather(6, 1024, "2.27.3 half"));
  EXPECT_GT(six->log_factor, 0.3);
  EXPECT_LT(six->log_factor, 0.6);
  EXPECT_FALSE(six->at_swept_ranks);
  EXPECT_NEAR(leftover_of(sweep, gather(16, 1024, ""))->log_factor, 0.6, 1e-9);
  EXPECT_FALSE(leftover_of(sweep, test_support::message("nccl", "alltoall", 4, 1024)).has_value());
}

TEST(CommunicationSeries, an_engines_all_reduce_is_told_apart_by_its_shots) {
  const auto series = [](const char* operation, int64_t ranks, double kib) {
    return series_of({.operation = operation, .ranks = ranks, .bytes = kib * 1024});
  };
  EXPECT_EQ(series("vllm_graph", 4, 511), "vllm_graph");
  EXPECT_EQ(series("vllm_graph", 4, 512), "vllm_graph two-shot");
  EXPECT_EQ(series("sglang_eager", 8, 256), "sglang_eager two-shot");
  EXPECT_EQ(series("sglang_eager", 2, 4096), "sglang_eager") << "two ranks read at once, whatever the size";
  EXPECT_EQ(series("all_reduce", 8, 4096), "all_reduce") << "NCCL's";
  EXPECT_EQ(series_without_shots({.operation = "vllm_graph", .ranks = 8, .bytes = 1 << 20}), "vllm_graph");
}

TEST(NearestVariant, is_the_nearest_version_of_the_same_library_and_format) {
  const std::vector<std::string> known = {"2.23 half", "2.27.3 half", "2.27.3 int8", "2.29.2 half"};
  EXPECT_EQ(nearest_variant("2.27.3 half", known), "2.27.3 half");
  EXPECT_EQ(nearest_variant("2.26.2 half", known), "2.27.3 half");
  EXPECT_EQ(nearest_variant("2.19 half", known), "2.23 half");
  EXPECT_EQ(nearest_variant("2.31 int8", known), "2.27.3 int8");
  EXPECT_EQ(nearest_variant("half", known), "2.29.2 half");
  EXPECT_EQ(nearest_variant("0.5.10", std::vector<std::string>{"0.5.9", "0.5.14"}), "0.5.9");
  EXPECT_EQ(nearest_variant("1", {}), "");
}

}  // namespace foretoken::communication_calibration_test
