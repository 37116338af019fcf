#include "compose/profile/stack_writer.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "compose/lowering.h"
#include "compose/profile/layer.h"
#include "compose/profile/test_trace.h"
#include "hardware/catalogue.h"

namespace foretoken::stack_writer_test {

using testing::HasSubstr;

ProfiledStep profiled(int layers) {
  return parse_profile(test_trace(layers), "trace.json");
}

Stack imported(const std::vector<ProfiledStep>& steps) {
  return parse_stack(stack_from_profiles(steps, {.name = "mine"}).file.dump(), "mine.json");
}

TEST(ProfiledLayer, sizes_are_those_of_the_model) {
  const ProfiledLayer layer = find_layer(profiled(4));
  EXPECT_EQ(layer.layers, 4U);
  EXPECT_EQ(layer.batch, TestTrace::batch);
  EXPECT_EQ(layer.q_len, TestTrace::length);
  EXPECT_EQ(layer.heads, TestTrace::heads);
  EXPECT_EQ(layer.kv_heads, TestTrace::kv_heads);
  EXPECT_EQ(layer.hidden, TestTrace::hidden);
  EXPECT_EQ(layer.inter, TestTrace::inter);
  EXPECT_EQ(layer.phase, StepPhase::prefill);
}

TEST(ProfiledLayer, every_kernel_of_a_layer_belongs_to_one_operator) {
  const ProfiledLayer layer = find_layer(profiled(3));
  EXPECT_EQ(layer.qkv.kernels.size(), 3U);
  EXPECT_EQ(layer.feed_in.kernels.size(), 2U);
  EXPECT_EQ(layer.output_projection.kernels.size(), 1U);
  EXPECT_EQ(layer.feed_out.kernels.size(), 1U);
  EXPECT_EQ(layer.activation.kernels.size(), 2U);
  EXPECT_EQ(layer.post_attention_norm.kernels.size(), 8U);
  EXPECT_EQ(layer.input_norm.kernels.size(), 8U);
  EXPECT_EQ(layer.rotary.kernels.size(), 2U);
  EXPECT_EQ(layer.cache.kernels.size(), 1U);
  EXPECT_EQ(layer.attention.kernels.size(), 1U);
  EXPECT_EQ(layer.start.kernels.size(), 2U) << "embedding and positions";
}

TEST(StackFromProfile, the_stack_launches_the_kernels_that_the_trace_shows) {
  const Stack stack = imported({profiled(2)});
  EXPECT_EQ(stack.dispatch_of(StepPhase::prefill), Dispatch::eager);
  const int64_t rows = TestTrace::batch * TestTrace::length;
  // The operators of one layer with other sizes than the trace's.
  const int64_t scale = 3;
  const std::vector<Operator> operators = {
      {.name = "input_norm", .shape = NormShape{.rows = rows * scale, .width = 640, .adds_residual = true}},
      {.name = "qkv_proj", .shape = GemmShape{.m = rows * scale, .n = 960, .k = 640}},
      {.name = "rope", .shape = RopeShape{.tokens = rows * scale, .heads = 10, .kv_heads = 5, .rotary_dim = 48}},
      {.name = "attention",
       .shape = AttentionShape{.batch = 2, .heads = 10, .kv_heads = 5, .head_dim = 48, .q_len = 48, .kv_len = 48}},
      {.name = "o_proj", .shape = GemmShape{.m = rows * scale, .n = 640, .k = 480}},
      {.name = "post_attention_norm", .shape = NormShape{.rows = rows * scale, .width = 640, .adds_residual = true}},
      {.name = "gate_up_proj", .shape = GemmShape{.m = rows * scale, .n = 2000, .k = 640}},
      {.name = "activation", .shape = ActivationShape{.rows = rows * scale, .width = 1000}},
      {.name = "down_proj", .shape = GemmShape{.m = rows * scale, .n = 640, .k = 1000}}};
  std::map<std::string, int64_t> kernels;
  double host = 0;
  for (const Launch& launch : lower(stack, operators, {.phase = StepPhase::prefill, .model = "llama"})) {
    kernels[operators[launch.call].name] += launch.count;
    host += launch.host.value() * static_cast<double>(launch.count) + launch.host_before.value();
    if (const auto* norm = std::get_if<ElementwiseShape>(&launch.shape); norm != nullptr && launch.name == "norm") {
      EXPECT_TRUE(norm->elements == rows * scale * 640 || norm->elements == rows * scale) << norm->elements;
    }
  }
  EXPECT_EQ(kernels["input_norm"], 8);
  EXPECT_EQ(kernels["qkv_proj"], 3);
  EXPECT_EQ(kernels["rope"], 2);
  EXPECT_EQ(kernels["attention"], 2);
  EXPECT_EQ(kernels["o_proj"], 1);
  EXPECT_EQ(kernels["post_attention_norm"], 8);
  EXPECT_EQ(kernels["gate_up_proj"], 2);
  EXPECT_EQ(kernels["activation"], 2);
  EXPECT_EQ(kernels["down_proj"], 1);
  EXPECT_NEAR(host, 29 * 6e-6, 1e-9) << "29 launches of 6 us each";
}

TEST(StackFromProfile, equal_kernels_in_a_row_are_written_once) {
  const Json file = stack_from_profiles(std::vector{profiled(2)}, {.name = "mine"}).file;
  EXPECT_THAT(file.dump(0), HasSubstr("n * kv_heads / (heads + 2 * kv_heads)\",\"times\":2"));
}

TEST(StackFromProfile, a_long_kernel_that_took_longer_than_predicted_gets_more_elements) {
  const KernelPredictor predictor(HardwareCatalogue(FORETOKEN_SOURCE_DIR "/data/hardware").device("h200_sxm"));
  ProfiledStep step = profiled(2);
  for (ProfiledKernel& kernel : step.kernels) {
    if (kernel.name.find("CatArray") != std::string::npos) kernel.us = 500;
  }
  const auto cache_elements = [&](const KernelPredictor* used) {
    const Json file = stack_from_profiles(std::vector{step}, {.name = "mine", .predictor = used}).file;
    for (const Json& rule : file.find("rules")->items()) {
      for (const Json& kernel : rule.find("emit")->items()) {
        if (kernel.find("name") != nullptr && kernel.find("name")->string() == "cache") {
          return kernel.find("elements")->string();
        }
      }
    }
    return std::string();
  };
  EXPECT_EQ(cache_elements(nullptr), "batch * kv_len * kv_heads * head_dim");
  EXPECT_THAT(cache_elements(&predictor), HasSubstr(" * batch * kv_len * kv_heads * head_dim"));
}

TEST(StackFromProfile, a_step_that_cannot_be_read_is_told_why) {
  const auto complaint = [](const ProfiledStep& step) {
    try {
      stack_from_profiles(std::vector{step}, {.name = "mine"});
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(complaint(profiled(1)), HasSubstr("at least two layers"));
  ProfiledStep unsized = profiled(2);
  for (ProfiledOperator& call : unsized.operators) call.dims.clear();
  EXPECT_THAT(complaint(unsized), HasSubstr("record_shapes"));
  ProfiledStep captured = profiled(2);
  captured.graph = true;
  for (ProfiledKernel& kernel : captured.kernels) kernel.call.reset();
  EXPECT_THAT(complaint(captured), HasSubstr("without CUDA graphs"));
}

TEST(StackFromProfile, two_steps_of_one_phase_are_refused) {
  EXPECT_THROW(imported({profiled(2), profiled(3)}), InputError);
}

TEST(StackImport, costs_alone_are_read_from_a_trace_without_layers) {
  TestTrace trace;
  for (int i = 0; i < 6; ++i) trace.linear(64, 64);
  const std::vector<ProfiledStep> steps{parse_profile(trace.text(), "trace.json")};
  EXPECT_THROW(stack_from_profiles(steps, {.name = "mine"}), InputError);
  EXPECT_THROW(stack_from_profiles(steps, {.name = "mine", .costs_only = true}), InputError) << "extends nothing";
  const Json file = stack_from_profiles(steps, {.name = "mine", .extends = "hf-eager", .costs_only = true}).file;
  EXPECT_EQ(file.find("rules"), nullptr);
  // 10 us from launch to launch, less 4 for the operator that was recorded; kernels start 7 us behind their launch.
  EXPECT_EQ(file.find("costs")->find("host_us")->find("gemm")->number(), 6);
  EXPECT_EQ(file.find("costs")->find("launch_us")->number(), 7);
}

}  // namespace foretoken::stack_writer_test
