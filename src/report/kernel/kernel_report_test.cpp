#include "report/kernel/kernel_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "hardware/catalogue.h"
#include "report/kernel/kernel_plot.h"

namespace foretoken::kernel_report_test {

using testing::HasSubstr;
using testing::Not;

Device device_named(const char* name) {
  return HardwareCatalogue(FORETOKEN_SOURCE_DIR "/data/hardware").device(name);
}

KernelExplanation explained() {
  using enum Explained::Kind;
  KernelExplanation explanation;
  explanation.estimate = KernelPredictor(device_named("h100_sxm")).estimate(GemmShape{.m = 64, .n = 4096, .k = 4096});
  explanation.estimate.seconds = {.value = 20e-6, .low = 18e-6, .high = 23e-6, .kind = Confidence::extrapolated};
  explanation.estimate.tier = Tier::measured;
  explanation.swept_device = "h100_sxm";
  explanation.form = "gemm";
  explanation.roofline_seconds = 10e-6;
  explanation.efficiency = 0.5;
  explanation.lines = {{fact, "tile_rows", 64, "", "rows of a tile"},
                       {part, "launch", 3e-6, "s", "empty call"},
                       {part, "multiply", 15e-6, "s", "walk along k"},
                       {limit, "dram", 12e-6, "s", "from memory"},
                       {limit, "tensor_pipes", 2e-6, "s", "multiplies"}};
  explanation.form_seconds = 18e-6;
  explanation.correction = 20.0 / 18;
  explanation.envelope = {{"m", 64, 1, 65536}, {"n", 4096, 32, 1024}, {"k", 4096, 8192, 65536}};
  explanation.interval = {.basis = "held-out rows", .reading = "rows held out", .mape = 3.14};
  return explanation;
}

class KernelReportTest : public testing::Test {
 protected:
  const KernelFamily& family_ = kernel_family("gemm", {});
  Device device_ = device_named("h100_sxm");
  KernelExplanation explanation_ = explained();
  std::vector<MeasuredRow> rows_;
  KernelShape shape_ = GemmShape{.m = 64, .n = 4096, .k = 4096};
  KernelReport report() {
    return {.family = family_, .shape = shape_, .device = device_, .explanation = explanation_, .nearest = rows_};
  }
};

TEST_F(KernelReportTest, says_which_size_left_the_sweep_and_by_how_much) {
  const std::string text = kernel_text(report());
  EXPECT_THAT(text, HasSubstr("n 4096 is 4 times the largest measured,"));
  EXPECT_THAT(text, HasSubstr("k 4096 is 2 times below the smallest"));
  EXPECT_THAT(text, Not(HasSubstr("m 64 is")));
}

TEST_F(KernelReportTest, names_the_limit_that_binds_and_what_the_sweep_added) {
  const std::string text = kernel_text(report());
  EXPECT_THAT(text, HasSubstr("in this kernel by dram"));
  EXPECT_THAT(text, HasSubstr("learned correction"));
  EXPECT_THAT(text, HasSubstr("x1.111"));
  EXPECT_THAT(text, HasSubstr("50% of the roofline"));
  EXPECT_THAT(text, HasSubstr("held-out rows: rows held out; mean error there 3.1%"));
}

TEST_F(KernelReportTest, says_what_a_missing_number_format_falls_back_to) {
  explanation_.estimate.work.math = DType::fp4;
  EXPECT_THAT(kernel_text(report()), HasSubstr("the fp8 rate"));
  EXPECT_EQ(kernel_json(report()).find("multiplies_in")->string(), "fp8");
  explanation_.estimate.work.math = DType::bf16;
  EXPECT_THAT(kernel_text(report()), Not(HasSubstr("does not multiply in")));
}

TEST_F(KernelReportTest, a_kernel_in_the_memory_is_not_held_against_the_roofline_of_the_device) {
  explanation_.efficiency = 1.7;
  KernelReport in_memory = report();
  in_memory.in_memory = true;
  const std::string text = kernel_text(in_memory);
  EXPECT_THAT(text, HasSubstr("runs on     units in the memory"));
  EXPECT_THAT(text, Not(HasSubstr("of the roofline")));
  EXPECT_THAT(text, Not(HasSubstr("MBU")));
  EXPECT_THAT(text, Not(HasSubstr("in this kernel by"))) << "limits of the device";
  EXPECT_EQ(kernel_json(in_memory).find("mbu")->kind(), Json::Kind::null);
  EXPECT_EQ(kernel_json(in_memory).find("efficiency")->kind(), Json::Kind::null);
  EXPECT_TRUE(kernel_json(in_memory).find("runs_in_memory")->boolean());
}

TEST_F(KernelReportTest, data_beyond_the_memory_of_the_device_are_noted) {
  EXPECT_THAT(kernel_text(report()), Not(HasSubstr("do not fit")));
  explanation_.estimate.work.weights_read = gigabytes(100);
  EXPECT_THAT(kernel_text(report()), HasSubstr("do not fit in this device's"));
}

TEST_F(KernelReportTest, a_few_of_the_nearest_rows_are_shown_and_all_are_counted) {
  for (int i = 0; i < 30; ++i) {
    rows_.push_back({.row = 1,
                     .device = "h100_sxm",
                     .variant = "torch_linear",
                     .shape = GemmShape{.m = 100 + i, .n = 1, .k = 1},
                     .measured_seconds = 1e-5,
                     .predicted = explanation_.estimate,
                     .distance = 0.1 * i});
  }
  const std::string text = kernel_text(report());
  EXPECT_THAT(text, HasSubstr("m=100 n=1 k=1"));
  EXPECT_THAT(text, HasSubstr("+100.0"));
  EXPECT_THAT(text, HasSubstr("30 rows like this"));
  EXPECT_THAT(text, Not(HasSubstr("m=129")));
  EXPECT_LT(kernel_json(report()).find("nearest")->items().size(), 30u);
}

TEST_F(KernelReportTest, json_has_every_line_of_the_explanation) {
  const Json json = kernel_json(report());
  EXPECT_EQ(json.find("explanation")->items().size(), explanation_.lines.size());
  EXPECT_EQ(json.find("explanation")->items()[1].find("name")->string(), "launch");
  EXPECT_EQ(json.find("envelope")->items()[1].find("inside")->boolean(), false);
}

TEST_F(KernelReportTest, a_plot_needs_flops_and_a_peak) {
  PlottedKernel kernel{.estimate = explanation_.estimate, .label = "x"};
  EXPECT_THAT(kernel_plot(family_, device_, {&kernel, 1}, rows_, std::nullopt), HasSubstr("<svg"));
  kernel.estimate.work.flops = Flops(0);
  EXPECT_THROW(kernel_plot(family_, device_, {&kernel, 1}, rows_, std::nullopt), InputError);
  EXPECT_THROW(kernel_plot(family_, device_, {}, rows_, std::nullopt), InputError);
}

}  // namespace foretoken::kernel_report_test
