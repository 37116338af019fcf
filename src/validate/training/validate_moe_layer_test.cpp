#include "validate/training/validate_moe_layer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "base/file.h"
#include "training/test_machine.h"

namespace foretoken::validate_moe_layer_test {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr const char* layer_header =
    "case,gpu,n_gpus,seq,micro_batch,hidden,moe_ffn,experts,topk,shared_ffn,tp,ep,dispatcher,dtype,forward_ms,"
    "backward_ms\n";

class MoeLayers : public testing::Test {
 protected:
  Validation validate(const std::string& rows) {
    file_ = fs::path(testing::TempDir()) /
            (std::string("layers_") + testing::UnitTest::GetInstance()->current_test_info()->name() + ".csv");
    write_file(file_, layer_header + rows);
    const HardwareCatalogue hardware(FORETOKEN_SOURCE_DIR "/data/hardware");
    return validate_moe_layers(
        {.data = file_,
         .stack = training_test::plain_stack(),
         .clusters = {{.gpu = "H100-80GB", .cluster = "h100_ib_rail", .sources = {}}}},
        hardware, [](const Cluster& cluster) { return training_test::roofline_machine(cluster); },
        [&](const ScoredMoeLayer& one) {
          predicted_[std::string(one.name) + " " + std::string(one.pass)] = one.predicted_ms;
        });
  }
  ~MoeLayers() override {
    std::error_code ignored;
    fs::remove(file_, ignored);
  }
  fs::path file_;
  std::map<std::string, double> predicted_;
};

TEST_F(MoeLayers, are_predicted_by_pass_and_dispatcher) {
  const Validation validation = validate(
      "a,H100-80GB,8,4096,1,7168,2048,32,8,2048,1,8,a2a,bf16,7,10\n"
      "h,H100-80GB,8,4096,1,7168,2048,32,8,2048,1,8,hybridep,bf16,6,9\n"
      "q,H100-80GB,8,4096,1,7168,2048,32,8,2048,1,8,hybridep,fp8-block,6,9\n");
  EXPECT_TRUE(validation.skipped.empty());
  EXPECT_EQ(validation.overall.n, 6u);
  ASSERT_EQ(validation.groups.size(), 2u);
  EXPECT_GT(predicted_["h backward"], 1.5 * predicted_["h forward"]);
  EXPECT_GT(predicted_["a forward"], predicted_["h forward"]);
  EXPECT_GT(predicted_["a backward"], predicted_["h backward"]);
  EXPECT_LT(predicted_["q backward"], predicted_["h backward"]);
  // Two matrices of 7168 x 2048 for eight experts and a shared one, each way of 4096 tokens at 989 TFLOP/s.
  EXPECT_GT(predicted_["h forward"], 1e3 * 9 * 4096 * 4 * 7168.0 * 2048 / 989e12);
}

TEST_F(MoeLayers, that_cannot_be_asked_are_skipped_with_the_reason) {
  const Validation validation = validate(
      "a,H100-80GB,8,4096,1,7168,2048,32,8,2048,1,8,pigeon,bf16,7,10\n"
      "b,H1000,8,4096,1,7168,2048,32,8,2048,1,8,deepep,bf16,7,10\n"
      "c,H100-80GB,8,4096,1,7168,2048,30,8,2048,1,8,deepep,bf16,7,10\n");
  ASSERT_EQ(validation.skipped.size(), 3u);
  EXPECT_THAT(validation.skipped[0].why, HasSubstr("hybridep"));
  EXPECT_THAT(validation.skipped[1].why, HasSubstr("clusters.json"));
}

}  // namespace foretoken::validate_moe_layer_test
