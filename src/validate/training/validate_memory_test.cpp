#include "validate/training/validate_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "training/runs/test_runs.h"

namespace foretoken::validate_memory_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr const char* header =
    "source,model,layers,hidden,heads,seq,vocab,tp,pp,vpp,micro_batch,dtype,quantity,sp,recompute,value,unit\n";

class PrintedMemory : public testing::Test {
 protected:
  Validation validate(const std::string& rows) {
    file_ = fs::path(testing::TempDir()) /
            (std::string("memory_") + testing::UnitTest::GetInstance()->current_test_info()->name() + ".csv");
    write_file(file_, header + rows);
    CsvReader table(file_);
    EXPECT_TRUE(is_printed_memory(table));
    return validate_printed_memory(std::move(table));
  }
  ~PrintedMemory() override {
    std::error_code ignored;
    fs::remove(file_, ignored);
  }
  fs::path file_;
};

// 22B of arXiv 2205.05198: 18 bytes for each of 12 h^2 parameters of 48 layers, over 8 ranks; s b h (10 + 24/8 + 5 a
// s/h/8).
TEST_F(PrintedMemory, is_met_by_the_formulas_of_the_paper) {
  const Validation validation = validate(
      "paper,GPT-22B,48,6144,64,2048,51200,8,1,1,4,fp16,params+grads+optimizer,,,45.5625,GiB\n"
      "paper,GPT-22B,48,6144,64,2048,51200,8,1,1,4,fp16,activations stage 0,0,none,59.25,GiB\n");
  EXPECT_TRUE(validation.skipped.empty());
  EXPECT_EQ(validation.overall.n, 2U);
  EXPECT_NEAR(validation.overall.mape, 0, 1e-9);
}

TEST_F(PrintedMemory, of_an_unknown_quantity_is_skipped_with_the_reason) {
  const Validation validation = validate("paper,GPT-22B,48,6144,64,2048,51200,8,1,1,4,fp16,weights,0,none,59.25,GiB\n");
  ASSERT_EQ(validation.skipped.size(), 1U);
  EXPECT_THAT(validation.skipped.front().why, HasSubstr("activations stage 0"));
}

TEST(MeasuredMemory, is_scored_row_by_row) {
  const fs::path file = fs::path(testing::TempDir()) / "measured_memory.csv";
  write_file(
      file,
      "id,source,model,task,layers,hidden,heads,kv_heads,head_dim,ffn,gated,vocab,seq,experts,topk,shared_experts,"
      "moe_ffn,dense_layers,attn,gpu,gpus_per_node,n_gpus,tp,sp,cp,pp,vpp,dp,ep,zero,micro_batch,global_batch,"
      "dtype,recompute,iter_time_s,tflops_per_gpu,tflops_def,mfu_pct,tokens_per_s_per_gpu,primary,steps_n,step_cv,"
      "config_grade,notes,peak_allocated_gb\n"
      "r1,made-up,Tiny-GPT,pretrain,8,2048,16,16,128,8192,0,32000,2048,0,0,0,0,8,mha,H100,8,8,1,0,1,1,1,8,1,0,1,8,"
      "bf16,none,1,,,,,iter_time_s,,,A,,20\n"
      "r2,made-up,Tiny-GPT,pretrain,8,2048,16,16,128,8192,0,32000,2048,0,0,0,0,8,mha,H100,8,8,1,0,1,1,1,8,1,0,1,8,"
      "bf16,none,1,,,,,iter_time_s,,,A,,\n");
  EXPECT_TRUE(is_measured_memory(CsvReader(file)));
  TrainingStack stack = training_test::plain_stack();
  stack.runs = {{.source = "made-up"}};
  TrainingCaseLibrary library = training_test::made_up_library({stack});
  const Validation validation = validate_measured_memory(file, library);
  fs::remove(file);
  EXPECT_EQ(validation.overall.n, 1U) << "the second row gives none";
  EXPECT_FALSE(validation.has_intervals);
  EXPECT_TRUE(validation.skipped.empty());
}

}  // namespace foretoken::validate_memory_test
