#include "validate/training/validate_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"

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

}  // namespace foretoken::validate_memory_test
