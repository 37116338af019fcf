#include "validate/steps/validate_steps.h"

#include <cmath>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "library/library.h"

namespace foretoken::validate_steps_test {

const std::filesystem::path data = FORETOKEN_SOURCE_DIR "/data";

class ValidateSteps : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    file_ = std::filesystem::path(testing::TempDir()) / (std::string("steps_") + info->name() + ".csv");
  }
  void TearDown() override { std::filesystem::remove(file_); }

  StepValidation validate(const std::string& text, StepValidationRequest request = {}) {
    write_file(file_, text);
    request.data = file_;
    request.layer = read_layer_conventions(data / "layers" / "llmcompass.json");
    return validate_steps(
        request, Library(data), {}, [&](const Device& device, const ParallelPlan&, const PlacementSpec&) {
          return DeviceModels{KernelPredictor(device, intervals_, nullptr, Tier::best, Caches::cold, correlations_),
                              nullptr};
        });
  }

  static constexpr const char* header =
      "device,model,stack,dispatch,phase,batch,input_len,context_len,dtype,measured_ms,kernel_ms\n";
  std::filesystem::path file_;
  const RooflineIntervals intervals_ = read_roofline_intervals(data / "kernels" / "roofline_intervals.json");
  ErrorCorrelations correlations_;
};

TEST_F(ValidateSteps, scores_every_row_and_groups_by_stack_and_phase) {
  const StepValidation result = validate(std::string(header) +
                                         "h200_sxm,Llama-3.1-8B,torch-graph,graph,decode,8,1,1024,bf16,5.5,5.1\n"
                                         "h200_sxm,Llama-3.1-8B,hf-eager,eager,prefill,1,128,0,bf16,18.5,8.3\n");
  EXPECT_EQ(result.errors.overall.n, 2u);
  ASSERT_EQ(result.errors.groups.size(), 2u);
  EXPECT_EQ(result.errors.groups[0].name, "hf-eager/prefill");
  EXPECT_EQ(result.errors.groups[1].name, "torch-graph/decode");
  EXPECT_EQ(result.kernels.n, 2u);
  EXPECT_EQ(result.verdicts_right, 100) << "the first is device-bound, the second waits for the host";
}

TEST_F(ValidateSteps, the_measured_columns_do_not_move_a_prediction) {
  const std::string row = "h200_sxm,Llama-3.1-8B,torch-graph,graph,decode,8,1,1024,bf16,";
  std::vector<double> predicted;
  for (const char* measured : {"5.5,5.1\n", "500,1\n"}) {
    write_file(file_, header + row + measured);
    validate_steps(
        {.data = file_}, Library(data),
        [&](const ScoredStep& scored) { predicted.push_back(scored.predicted->seconds.value); },
        [](const Device& device, const ParallelPlan&, const PlacementSpec&) {
          return DeviceModels{KernelPredictor(device), nullptr};
        });
  }
  ASSERT_EQ(predicted.size(), 2u);
  EXPECT_EQ(predicted[0], predicted[1]);
}

TEST_F(ValidateSteps, steps_repeated_without_pause_are_held_against_the_power_limit) {
  const std::string columns = "device,model,stack,dispatch,phase,batch,input_len,context_len,dtype,measured_ms";
  const std::string row = "h200_sxm,Llama-3.1-8B,torch-graph,graph,prefill,4,8192,0,bf16,";
  const double cool = validate(columns + "\n" + row + "900\n").errors.overall.bias;
  const double held = validate(columns + "\n" + row + "900\n", {.sustained = true}).errors.overall.bias;
  EXPECT_GT(held, cool + 3) << "large multiplies draw more than the board may";
  const StepValidation both = validate(columns + ",sustained_ms\n" + row + "900,1800\n", {.sustained = true});
  EXPECT_NEAR(100 + both.errors.overall.bias, (100 + held) / 2, 1e-9) << "of sustained_ms";
}

TEST_F(ValidateSteps, a_row_that_cannot_be_expressed_is_skipped_with_the_reason) {
  const StepValidation result = validate(std::string(header) +
                                         "h200_sxm,Llama-3.1-8B,torch-graph,graph,dream,8,1,1024,bf16,5.5,\n"
                                         "h200_sxm,Llama-3.1-8B,torch-graph,telepathy,decode,8,1,1024,bf16,5.5,\n"
                                         "h200_sxm,Llama-3.1-8B,no-such-stack,graph,decode,8,1,1024,bf16,5.5,\n"
                                         "h200_sxm,no-such-model,torch-graph,graph,decode,8,1,1024,bf16,5.5,\n");
  EXPECT_EQ(result.errors.overall.n, 0u);
  ASSERT_EQ(result.errors.skipped.size(), 4u);
  EXPECT_NE(result.errors.skipped[0].why.find("dream"), std::string::npos);
  EXPECT_NE(result.errors.skipped[1].why.find("telepathy"), std::string::npos);
  EXPECT_NE(result.errors.skipped[2].why.find("no-such-stack"), std::string::npos);
  EXPECT_NE(result.errors.skipped[3].why.find("no-such-model"), std::string::npos);
}

TEST_F(ValidateSteps, a_missing_column_or_a_broken_number_is_an_error) {
  EXPECT_THROW(validate("device,model,stack,phase,batch\nh200_sxm,Llama-3.1-8B,vllm,decode,1\n"), InputError);
  EXPECT_THROW(validate(std::string(header) + "h200_sxm,Llama-3.1-8B,vllm,graph,decode,8,1,1024,bf16,fast,\n"),
               InputError);
}

TEST_F(ValidateSteps, reads_the_table_of_whole_models_that_neusight_publishes) {
  const StepValidation result = validate(
      "device,model,mode,seq_len,batch,fusion,parallelism,measured_ms\n"
      "v100_pcie,bert_large,inf,512,8,0,,257\n"
      "v100_pcie,gpt2_large,train,1024,1,1,,577\n"
      "v100_pcie,gpt2_large,train,1024,4,0,dp4,577\n");
  EXPECT_EQ(result.errors.overall.n, 2u);
  ASSERT_EQ(result.errors.groups.size(), 2u);
  EXPECT_EQ(result.errors.groups[0].name, "hf-eager-math/inf");
  EXPECT_EQ(result.errors.groups[1].name, "torch-compile-math/train");
  ASSERT_EQ(result.errors.skipped.size(), 1u);
}

TEST_F(ValidateSteps, reads_a_layer_by_its_operators_and_adds_them_up) {
  const StepValidation result = validate(
      "device,phase,op,latency_ms\n"
      "4xA100_NVLink3,prefill,Q_K_V,15\n4xA100_NVLink3,prefill,Softmax,3\n4xA100_NVLink3,prefill,AllReduce_MHA,3\n"
      "A100,decode,W1_proj,0.1\nA100,decode,Telepathy,0.1\nA100,train,GeLU,0.1\n");
  EXPECT_EQ(result.errors.skipped.size(), 2u);
  std::vector<std::string> groups;
  for (const ValidationGroup& group : result.errors.groups) groups.push_back(group.name);
  EXPECT_EQ(groups, (std::vector<std::string>{"decode/W1_proj", "decode/total", "prefill/AllReduce_MHA",
                                              "prefill/Q_K_V", "prefill/Softmax", "prefill/total"}));
  // Three multiplies of 16384 x 3072 x 12288 at 312 TFLOP/s.
  EXPECT_NEAR(100 * (11.9 / 15 - 1), result.errors.groups[3].errors.bias, 2);
}

TEST_F(ValidateSteps, the_interval_of_a_layer_knows_how_errors_of_its_operators_go_together) {
  const auto total_is_inside = [&](double measured_ms) {
    const StepValidation result = validate(fmt::format(
        "device,phase,op,latency_ms\nA100,prefill,Wo_proj,{}\nA100,prefill,W1_proj,1\nA100,prefill,W2_proj,1\n",
        measured_ms));
    const ValidationGroup& total = result.errors.groups.back();
    EXPECT_EQ(total.name, "prefill/total");
    return total.errors.coverage90 == 100;
  };
  const auto widest = [&](double correlation) {
    correlations_ = {.within_other = correlation, .between = correlation};
    double inside = 15, outside = 10'000;  // the three operators take 15 ms at the peak
    while (outside > 1.01 * inside) {
      const double middle = std::sqrt(inside * outside);
      (total_is_inside(middle) ? inside : outside) = middle;
    }
    return inside;
  };
  EXPECT_GT(widest(1), 1.05 * widest(0)) << "errors that do not cancel leave the sum less sure";
}

TEST_F(ValidateSteps, the_error_of_long_rows_leaves_short_operators_of_a_layer_out) {
  const StepValidation result =
      validate("device,phase,op,latency_ms\nA100,decode,GeLU,0.01\nA100,decode,W1_proj,1\n", {.group_by = "op"});
  ASSERT_EQ(result.errors.groups.size(), 2u);
  EXPECT_FALSE(result.errors.groups[0].mape_20us.has_value());
  EXPECT_EQ(result.errors.mape_20us, result.errors.groups[1].errors.mape);
}

TEST_F(ValidateSteps, columns_of_a_layer_table_stand_above_the_conventions) {
  const StepValidation result = validate(
      "device,phase,op,latency_ms,model,batch,tp\n"
      "A100,prefill,W1_proj,15,,,\nA100,prefill,W1_proj,15,,4,\nA100,prefill,W1_proj,15,,,8\n"
      "A100,prefill,W1_proj,15,openai-community/gpt2-large,,4\n",
      {.group_by = "model"});
  EXPECT_EQ(result.errors.overall.n, 4u);
  ASSERT_EQ(result.errors.groups.size(), 2u);
  EXPECT_GT(result.errors.groups[0].errors.bias, result.errors.groups[1].errors.bias) << "GPT-3 is the larger";
}

}  // namespace foretoken::validate_steps_test
