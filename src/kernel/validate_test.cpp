#include "kernel/validate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"

namespace foretoken::validate_test {

KernelPredictor roofline_only(const Device& device, Caches /*caches*/) {
  return KernelPredictor(device);
}

PredictorMaker with_intervals(const RooflineIntervals& intervals) {
  return [intervals](const Device& device, Caches /*caches*/) {
    return KernelPredictor(device, intervals, nullptr, Tier::roofline, Caches::benchmark);
  };
}

namespace fs = std::filesystem;
using testing::HasSubstr;

const HardwareCatalogue& hardware() {
  static const HardwareCatalogue catalogue(FORETOKEN_SOURCE_DIR "/data/hardware");
  return catalogue;
}

// An empty folder of the test's own, removed when it ends.
class KernelValidationTest : public testing::Test {
 protected:
  KernelValidationTest() {
    folder = fs::path(testing::TempDir()) /
             ("kernel_validation_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(folder);
    fs::create_directories(folder);
  }
  ~KernelValidationTest() override {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((folder / name).parent_path());
    write_file(folder / name, text);
  }
  Validation validate(KernelValidationRequest request = {}, const ScoredKernelSink& sink = {}) const {
    if (request.data.empty()) request.data = folder;
    return validate_kernels(request, hardware(), roofline_only, sink);
  }
  fs::path folder;
};

const char* const gemm_rows = "kernel,dtype,m,n,k,latency_us\na,bf16,4096,4096,4096,300\nb,fp8,1,4096,4096,20\n";

TEST_F(KernelValidationTest, errors_are_those_of_the_predictions) {
  write("h100_sxm/gemm.csv", "dtype,m,n,k,latency_us\nbf16,4096,4096,4096,300\n");
  const KernelPredictor predictor(hardware().device("h100_sxm"));
  const double predicted = 1e6 * predictor.estimate(GemmShape{.m = 4096, .n = 4096, .k = 4096}).seconds.value;
  const Validation result = validate();
  ASSERT_EQ(result.groups.size(), 1u);
  EXPECT_EQ(result.groups[0].name, "h100_sxm/gemm");
  EXPECT_EQ(result.overall.n, 1u);
  EXPECT_DOUBLE_EQ(result.overall.mape, 100 * (300 - predicted) / 300);
}

TEST_F(KernelValidationTest, the_measured_column_does_not_reach_the_predictor) {
  std::vector<double> predictions;
  for (const char* latency : {"1", "1000000"}) {
    write("h100_sxm/gemm.csv", fmt::format("m,n,k,latency_us\n64,64,64,{}\n", latency));
    validate({}, [&](const ScoredKernel& row) { predictions.push_back(row.predicted.seconds.value); });
  }
  ASSERT_EQ(predictions.size(), 2u);
  EXPECT_EQ(predictions[0], predictions[1]);
}

TEST_F(KernelValidationTest, rows_that_are_no_measurements_are_skipped_with_the_reason) {
  write("h100_sxm/quantize_fp8.csv",
        "op,m,k,latency_us\ndyn_minus_static,8,8,1\nstatic_quant,8,8,0\nstatic_quant,8,8,2\n");
  write("h100_sxm/gemm.csv", "dtype,m,n,k,latency_us\nint3,1,1,1,5\n");
  const Validation result = validate();
  EXPECT_EQ(result.overall.n, 1u);
  ASSERT_EQ(result.skipped.size(), 3u);
  EXPECT_THAT(result.skipped[0].why, HasSubstr("int3"));
  EXPECT_EQ(result.skipped[1].row, 1u);
  EXPECT_EQ(result.skipped[1].why, "a difference of two timings, not a kernel");
  EXPECT_EQ(result.skipped[2].row, 2u);
  EXPECT_THAT(result.skipped[2].why, HasSubstr("latency_us"));
}

TEST_F(KernelValidationTest, a_device_nobody_knows_is_skipped_as_a_whole) {
  write("h100_sxm/gemm.csv", gemm_rows);
  write("h100_smx/gemm.csv", gemm_rows);
  const Validation result = validate();
  EXPECT_EQ(result.overall.n, 2u);
  ASSERT_EQ(result.skipped.size(), 1u);
  EXPECT_EQ(result.skipped[0].row, 0u);
  EXPECT_THAT(result.skipped[0].why, HasSubstr("h100_sxm"));
}

TEST_F(KernelValidationTest, other_files_are_noted_and_left_alone) {
  write("gpus.csv", "gpu\nx\n");
  write("h100_sxm/gemm.csv", gemm_rows);
  write("h100_sxm/manifest.csv", "a\nb\n");
  write("other_campaign/h100_sxm/gemm.csv", gemm_rows);
  const Validation result = validate();
  EXPECT_EQ(result.overall.n, 2u);
  EXPECT_EQ(result.notes.size(), 3u);
}

TEST_F(KernelValidationTest, a_campaign_a_device_or_a_file_can_be_named_too) {
  write("campaigns/one/h100_sxm/gemm.csv", gemm_rows);
  write("campaigns/two/h100_sxm/gemm.csv", gemm_rows);
  EXPECT_EQ(validate({.data = folder / "campaigns"}).overall.n, 4u);
  EXPECT_EQ(validate({.data = folder / "campaigns/one"}).overall.n, 2u);
  EXPECT_EQ(validate({.data = folder / "campaigns/one/"}).overall.n, 2u);
  EXPECT_EQ(validate({.data = folder / "campaigns/one/h100_sxm"}).groups[0].name, "h100_sxm/gemm");
  EXPECT_EQ(validate({.data = folder / "campaigns/one/h100_sxm/gemm.csv"}).groups[0].name, "h100_sxm/gemm");
}

TEST_F(KernelValidationTest, rows_are_grouped_by_any_column) {
  write("h100_sxm/gemm.csv", gemm_rows);
  write("a100_sxm/gemm.csv", gemm_rows);
  const auto names = [&](const std::string& group_by) {
    std::vector<std::string> result;
    for (const ValidationGroup& group : validate({.group_by = group_by}).groups) result.push_back(group.name);
    return result;
  };
  EXPECT_EQ(names("dtype"), (std::vector<std::string>{"bf16", "fp8"}));
  EXPECT_EQ(names("device"), (std::vector<std::string>{"a100_sxm", "h100_sxm"}));
  EXPECT_EQ(names("family"), (std::vector<std::string>{"gemm"}));
  EXPECT_THROW(names("dtpe"), InputError);
}

TEST_F(KernelValidationTest, filters_that_match_nothing_are_errors_that_suggest) {
  write("h100_sxm/gemm.csv", gemm_rows);
  write("a100_sxm/gemm.csv", gemm_rows);
  EXPECT_EQ(validate({.devices = {"H100-SXM"}}).overall.n, 2u);
  EXPECT_EQ(validate({.families = {"gemm"}}).overall.n, 4u);
  EXPECT_THROW(validate({.devices = {"h200_sxm"}}), InputError);
  EXPECT_THROW(validate({.families = {"gem"}}), InputError);
  EXPECT_THROW(validate({.families = {"moe"}}), InputError);
}

TEST_F(KernelValidationTest, broken_files_are_errors) {
  EXPECT_THROW(validate(), InputError);  // nothing there
  EXPECT_THROW(validate({.data = folder / "absent"}), InputError);
  for (const char* text : {"m,n,k,latency_us\n1,2\n", "m,n,k,latency_us\n1,2,x,4\n", "m,n,k\n1,2,3\n", "",
                           "m,n,k,latency_us\n1,2,3,fast\n", "m,n,k,latency_us\n-1,2,3,4\n",
                           "m,n,k,latency_us\n1e30,2,3,4\n", "m,n,k,latency_us\n1,2,3,nan\n"}) {
    write("h100_sxm/gemm.csv", text);
    EXPECT_THROW(validate(), InputError) << text;
  }
  write("h100_sxm/gemm.csv", gemm_rows);
  write("h100_sxm/moe.csv.gz", "\x1f\x8b\x08 not gzip");
  EXPECT_THROW(validate(), InputError);
}

TEST_F(KernelValidationTest, threads_do_not_change_the_answer) {
  for (const char* device : {"a100_sxm", "h100_sxm", "h200_sxm", "l40s", "b200_sxm"})
    write(std::string(device) + "/gemm.csv", gemm_rows);
  const Validation one = validate({.threads = 1}), many = validate({.threads = 4});
  ASSERT_EQ(one.groups.size(), many.groups.size());
  for (size_t i = 0; i < one.groups.size(); ++i) {
    EXPECT_EQ(one.groups[i].name, many.groups[i].name);
    EXPECT_EQ(one.groups[i].errors.mape, many.groups[i].errors.mape);
  }
  EXPECT_EQ(one.overall.mape, many.overall.mape);
}

TEST_F(KernelValidationTest, each_row_is_handed_out_in_order) {
  write("h100_sxm/gemm.csv", gemm_rows);
  std::vector<size_t> rows;
  validate({}, [&](const ScoredKernel& row) {
    rows.push_back(row.row);
    EXPECT_EQ(row.device, "h100_sxm");
    EXPECT_EQ(family_name(*row.shape), "gemm");
  });
  EXPECT_EQ(rows, (std::vector<size_t>{1, 2}));
}

TEST_F(KernelValidationTest, intervals_are_fitted_per_family) {
  write("h100_sxm/gemm.csv", gemm_rows);
  const RooflineIntervals intervals = fit_roofline_intervals({{.data = folder}}, hardware());
  EXPECT_EQ(intervals.devices, std::vector<std::string>{"h100_sxm"});
  EXPECT_EQ(intervals.families.at("gemm").rows, 2);
  EXPECT_GE(validate_kernels({.data = folder}, hardware(), with_intervals(intervals)).overall.coverage90, 50);
}

// ---- measured rows of six GPUs; see the README of the data for where they come from --------------------------------

class MeasuredKernelsNeedsData : public testing::Test {
 protected:
  void SetUp() override {
    const char* data = std::getenv("FORETOKEN_DATA");
    if (!data) GTEST_SKIP() << "FORETOKEN_DATA is not set";
    folder = fs::path(data) / "kernels";
    if (!fs::exists(folder)) GTEST_SKIP() << folder << " does not exist";
  }
  fs::path folder;
};

// A plain roofline on this source is known to be off by these mean absolute percentages, averaged over devices; far
// from them, FLOPs or bytes would be counted wrongly. The intervals that ship were fitted on these rows and more.
TEST_F(MeasuredKernelsNeedsData, roofline_errors_are_the_known_ones_and_intervals_hold_nine_tenths) {
  const RooflineIntervals intervals =
      read_roofline_intervals(FORETOKEN_SOURCE_DIR "/data/kernels/roofline_intervals.json");
  const Validation result = validate_kernels({.data = folder}, hardware(), with_intervals(intervals));
  struct Family {
    double mape = 0, devices = 0, rows = 0, covered = 0;
  };
  std::map<std::string, Family> families;
  for (const ValidationGroup& group : result.groups) {
    Family& family = families[group.name.substr(group.name.find('/') + 1)];
    const double rows = static_cast<double>(group.errors.n);
    family.mape += group.errors.mape;
    family.devices += 1;
    family.rows += rows;
    family.covered += rows * group.errors.coverage90;
  }
  const std::pair<const char*, double> known[] = {
      {"gemm", 57}, {"attention_prefill", 73}, {"attention_decode", 82}, {"moe", 56}};
  for (const auto& [name, mape] : known) {
    ASSERT_TRUE(families.contains(name));
    EXPECT_NEAR(families[name].mape / families[name].devices, mape, 4) << name;
  }
  EXPECT_NEAR(result.overall.coverage90, 90, 5);
  for (const auto& [name, family] : families) EXPECT_NEAR(family.covered / family.rows, 90, 5) << name;
}

TEST_F(MeasuredKernelsNeedsData, no_row_beats_the_tensor_peak) {
  std::map<std::string, Device, std::less<>> devices;
  size_t rows = 0;
  const auto check = [&](const ScoredKernel& row) {
    const Work& work = row.predicted.work;
    if (work.math == DType::fp32) return;  // vector units
    auto device = devices.find(row.device);
    if (device == devices.end()) {
      device = devices.emplace(std::string(row.device), hardware().device(std::string(row.device))).first;
    }
    const double rate = work.flops.value() / (row.measured_us * 1e-6);
    // Two rows of the H100 TRT-LLM campaign (bf16 multiply over an fp8 cache, head size 256) claim 1.15 and 1.28 of the
    // peak where no other exceeds 0.89: they were mistimed.
    const bool mistimed = row.file.find("trtllm/h100_sxm/attention_prefill") != std::string_view::npos &&
                          (row.row == 31865 || row.row == 34271);
    if (mistimed) return;
    EXPECT_LE(rate, device->second.peak_or_fallback(work.math)->value()) << row.file << " row " << row.row;
    // The time stretched by waves is a bound as well.
    EXPECT_LE(row.predicted.compute.value(), row.measured_us * 1e-6) << row.file << " row " << row.row;
    ++rows;
  };
  validate_kernels({.data = folder}, hardware(), roofline_only, check);
  if (fs::exists(folder / "trtllm")) validate_kernels({.data = folder / "trtllm"}, hardware(), roofline_only, check);
  EXPECT_GT(rows, 100'000u);
}

}  // namespace foretoken::validate_test
