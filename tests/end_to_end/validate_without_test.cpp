// `validate ... --without GENERATION`: a generation that the calibrations have never seen, by both tiers.
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json.h"
#include "run.h"

namespace foretoken::validate_without_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

class ValidateWithout : public testing::Test {
 protected:
  ValidateWithout() {
    const testing::TestInfo& info = *testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(testing::TempDir()) / (std::string("without_") + info.name());
    fs::remove_all(folder_);
    // Norms at a share of the bandwidth and a floor; one GPU is slower than its sheet says.
    write_norms("a100_sxm", 2.0e12, 1);
    write_norms("l40s", 0.86e12, 1);
    write_norms("h100_sxm", 3.35e12, 1.5);
  }
  ~ValidateWithout() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  void write_norms(const std::string& device, double bandwidth, double slower) const {
    std::string text = "dtype,rows,width,latency_us\n";
    for (int i = 0; i < 150; ++i) {
      const int rows = 1 << (4 + i % 12), width = 1024 * (1 + i % 7);
      const double us = slower * (3 + 4.0 * rows * width / (0.85 * bandwidth) * 1e6) * (1 + 0.02 * std::sin(i));
      text += fmt::format("bf16,{},{},{:.4f}\n", rows, width, us);
    }
    fs::create_directories(folder_ / "data" / device);
    write_file(folder_ / "data" / device / "norm.csv", text);
  }
  Outcome validate(const std::string& more) const {
    return run_foretoken(
        fmt::format("validate kernels --data {} --families norm {}", (folder_ / "data").string(), more));
  }

  fs::path folder_;
};

TEST_F(ValidateWithout, a_sweep_takes_out_what_the_sheet_does_not_say) {
  const Outcome table = validate("--without hopper");
  ASSERT_EQ(table.status, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("h100_sxm/norm"));
  EXPECT_THAT(table.out, testing::Not(HasSubstr("l40s/norm")));
  const Json json = parse_json(validate("--without h200_sxm --json").out, "answer");
  const JsonView view(json, "answer");
  EXPECT_EQ(view.at("without").string(), "sm_90");
  const JsonView cross = view.at("cross").at("overall"), measured = view.at("measured").at("overall");
  EXPECT_EQ(cross.at("n").integer(), measured.at("n").integer());
  EXPECT_GT(cross.at("n").integer(), 15);
  EXPECT_LT(cross.at("n").integer(), 50);
  EXPECT_GT(cross.at("mape").number(), 15);
  EXPECT_LT(measured.at("mape").number(), 8);
}

TEST_F(ValidateWithout, a_fit_is_made_once_and_read_again) {
  const std::string fitted = (folder_ / "fitted").string();
  const Outcome fit =
      run_foretoken(fmt::format("fit kernels --data {} --families norm --without hopper --sweep-withheld --source made "
                                "--date 2026-01-01 --out {}",
                                (folder_ / "data").string(), fitted));
  ASSERT_EQ(fit.status, 0) << fit.err;
  EXPECT_EQ(validate("--without hopper --calibration " + fitted).out, validate("--without hopper").out);
  const Outcome seen = validate("--without ampere --calibration " + fitted);
  EXPECT_EQ(seen.status, 2);
  EXPECT_THAT(in_one_line(seen.err), HasSubstr("has not seen a100_sxm"));
}

TEST_F(ValidateWithout, steps_and_runs_say_what_they_need) {
  const std::string table = (folder_ / "steps.csv").string();
  write_file(table,
             "device,model,stack,dispatch,phase,batch,input_len,context_len,dtype,measured_ms\n"
             "h100_sxm,llama-3.1-8b,vllm,graph,decode,8,1,512,bf16,8\n"
             "h100_sxm,llama-3.1-8b,vllm,graph,prefill,1,512,0,bf16,20\n"
             "a100_sxm,llama-3.1-8b,vllm,graph,decode,8,1,512,bf16,12\n");
  const Outcome nothing = run_foretoken("validate steps --data " + table + " --without hopper");
  EXPECT_EQ(nothing.status, 2);
  EXPECT_THAT(in_one_line(nothing.err), HasSubstr("--kernel-data FOLDER"));
  const std::string kernels = (folder_ / "data").string();
  const Outcome steps =
      run_foretoken(fmt::format("validate steps --data {} --without hopper --kernel-data {}", table, kernels));
  ASSERT_EQ(steps.status, 0) << steps.err;
  for (const char* figure : {"ttft_ms", "tpot_ms", "out_tok_s"}) EXPECT_THAT(steps.out, HasSubstr(figure));
  const Outcome other =
      run_foretoken(fmt::format("validate steps --data {} --without ada --kernel-data {}", table, kernels));
  EXPECT_EQ(other.status, 2);
  EXPECT_THAT(in_one_line(other.err), HasSubstr("a generation with rows in"));
}

}  // namespace foretoken::validate_without_test
