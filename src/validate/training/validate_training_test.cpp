#include "validate/training/validate_training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include <fmt/format.h>

#include "base/file.h"
#include "training/runs/test_runs.h"

namespace foretoken::validate_training_test {

namespace fs = std::filesystem;
using testing::HasSubstr;
using training_test::made_up_library;
using training_test::plain_stack;

constexpr std::string_view run_header =
    "id,source,model,task,layers,hidden,heads,kv_heads,head_dim,ffn,gated,vocab,seq,experts,topk,shared_experts,moe_"
    "ffn,"
    "dense_layers,attn,gpu,gpus_per_node,n_gpus,tp,sp,cp,pp,vpp,dp,ep,zero,micro_batch,global_batch,dtype,recompute,"
    "iter_time_s,tflops_per_gpu,tflops_def,mfu_pct,tokens_per_s_per_gpu,primary,steps_n,step_cv,config_grade,notes\n";

std::string run_line(const std::string& id, const std::string& source, const std::string& gpu,
                     const std::string& seconds) {
  return fmt::format(
      "{},{},Tiny-GPT,pretrain,8,2048,16,16,128,8192,0,32000,2048,0,0,0,0,8,mha,{},8,8,1,0,1,1,1,8,1,0,1,8,bf16,none,{}"
      ",,"
      ",,,iter_time_s,,,A,\n",
      id, source, gpu, seconds);
}

class ValidationOfRuns : public testing::Test {
 protected:
  ValidationOfRuns() {
    file_ = fs::path(testing::TempDir()) /
            (std::string("training_runs_") + testing::UnitTest::GetInstance()->current_test_info()->name() + ".csv");
    write_file(file_, std::string(run_header) + run_line("r1", "made-up", "H100", "1") +
                          run_line("r2", "made-up", "H100", "2") + run_line("r3", "made-up", "H100", "") +
                          run_line("r4", "made-up", "unheard-of", "1") + run_line("r5", "elsewhere", "H100", "1"));
    TrainingStack stack = plain_stack();
    stack.runs = {{.source = "made-up"}};
    stacks_ = {stack};
  }
  ~ValidationOfRuns() override {
    std::error_code ignored;
    fs::remove(file_, ignored);
  }
  fs::path file_;
  std::vector<TrainingStack> stacks_;
};

TEST_F(ValidationOfRuns, scores_those_with_a_time_and_says_why_others_are_not) {
  TrainingCaseLibrary library = made_up_library(stacks_);
  std::vector<double> predicted;
  const Validation validation = validate_training({.data = file_}, library, [&](const ScoredTraining& scored) {
    predicted.push_back(scored.predicted->seconds.value);
    EXPECT_EQ(scored.stack, "plain");
    EXPECT_EQ(scored.group, "made-up");
  });
  ASSERT_EQ(predicted.size(), 2U);
  EXPECT_EQ(predicted[0], predicted[1]) << "the measured time has no say";
  EXPECT_EQ(validation.overall.n, 2U);
  ASSERT_EQ(validation.skipped.size(), 3U);
  EXPECT_EQ(validation.skipped[0].row, 3U);
  EXPECT_THAT(validation.skipped[0].why, HasSubstr("no time of a step"));
  EXPECT_THAT(validation.skipped[1].why, HasSubstr("unheard-of"));
  EXPECT_THAT(validation.skipped[2].why, HasSubstr("elsewhere"));
  const double p = predicted[0];
  EXPECT_NEAR(validation.overall.mape, 100 * (std::abs(p - 1) + std::abs(p - 2) / 2) / 2, 1e-9);
}

TEST_F(ValidationOfRuns, looks_only_at_what_is_asked_for) {
  TrainingCaseLibrary library = made_up_library(stacks_);
  const Validation by_gpu =
      validate_training({.data = file_, .gpus = {"H100"}, .group_by = "id", .stack = "plain"}, library);
  EXPECT_EQ(by_gpu.groups.size(), 3U);
  EXPECT_EQ(by_gpu.skipped.size(), 1U);
  EXPECT_EQ(validate_training({.data = file_, .sources = {"elsewhere"}, .stack = "plain"}, library).overall.n, 1U);
  EXPECT_EQ(validate_training({.data = file_, .models = {"Large-GPT"}}, library).overall.n, 0U);
}

}  // namespace foretoken::validate_training_test
