#include "kernel/learned.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/file.h"
#include "kernel/calibration.h"
#include "kernel/kernel.h"
#include "kernel/test_support.h"

namespace foretoken::learned_test {

using namespace test_support;
using testing::HasSubstr;

const KernelShape norm = NormShape{.rows = 4096, .width = 4096};
const KernelShape decode =
    AttentionShape{.phase = AttentionPhase::decode, .batch = 8, .heads = 32, .kv_heads = 8, .kv_len = 4096};

class LearnedKernelsTest : public TestWithFolder {
 protected:
  void write(const FormCalibration& calibration) const {
    write_file(form_calibration_path(folder, calibration.form), calibration_json(calibration));
  }
  void write(const DeviceCalibration& calibration) const {
    const auto path = device_calibration_path(folder, calibration.device, calibration.form);
    std::filesystem::create_directories(path.parent_path());
    write_file(path, calibration_json(calibration));
  }
  // RMS norms measured with exp(0.5) times the times of the unfitted form; sizes of 1 to 2^20 rows, 2^10 to 2^13 wide.
  static DeviceCalibration measured_norms(const std::string& device) {
    const FormCalibration form = start_calibration(form_named("memory"));
    DeviceCalibration calibration{.form = "memory", .device = device, .source = "made up", .fitted_on = "2026-01-01"};
    calibration.rows = 200;
    calibration.constants = form.constants;
    calibration.shared = std::vector<double>(form.constants.size(), 0.0);
    calibration.groups["rms_norm"] = form.effects.at("common");
    calibration.ranges["rms_norm"] = {{0, 20}, {10, 13}, {10, 33}, {0, 1}, {0, 0}, {0, 0}, {0, 0}, {0, 0}};
    const size_t features = form_named("memory").make(Caches::cold)->feature_count() + 1 + raw_feature_count;
    calibration.residual = constant_trees(features, 0.5F);
    for (double& width : calibration.half_widths.by_time) width = 0.05;
    return calibration;
  }
  std::optional<LearnedTime> ask(const KernelShape& shape, Tier tier = Tier::best,
                                 const char* device = "h100_sxm") const {
    return LearnedKernels(hardware().device(device), folder).estimate(shape, "", tier);
  }
  double unfitted(const KernelShape& shape) const {
    const std::unique_ptr<Form> form = form_kind_for(shape)->make(Caches::benchmark);
    return form_seconds(*form, {.shape = shape, .variant = {}}, traits_named("h100_sxm"), start_constants(*form));
  }
};

TEST_F(LearnedKernelsTest, farther_outside_the_sizes_measured_the_sweep_says_less) {
  FormCalibration form = start_calibration(form_named("memory"));
  for (double& width : form.half_widths.by_time) width = 0.8;
  write(form);
  write(measured_norms("h100_sxm"));
  double before = 0;
  for (const int64_t width : {8192, 16384, 32768, 131072, 1048576}) {
    const std::optional<LearnedTime> time = ask(NormShape{.rows = 1024, .width = width});
    ASSERT_TRUE(time);
    const double half_width = std::log(time->seconds.high / time->seconds.value);
    EXPECT_GT(half_width, before + 0.01) << width;
    before = half_width;
  }
  EXPECT_GT(before, 0.6);
  EXPECT_LT(before, 0.85);
}

// Decodes of FlashAttention 3 that a sweep found to take twice the time of the unfitted form.
TEST_F(LearnedKernelsTest, names_of_cold_and_of_unknown_kernels_keep_the_sweep) {
  const FormCalibration form = start_calibration(form_named("attention_decode"));
  write(form);
  DeviceCalibration sweep{
      .form = "attention_decode", .device = "h100_sxm", .source = "made", .fitted_on = "2026-01-01"};
  sweep.rows = 100;
  sweep.constants = form.constants;
  sweep.shared = std::vector<double>(form.constants.size(), 0.0);
  sweep.groups[call_group({.shape = decode, .variant = "fa3"})] = form.effects.at("common");
  const size_t features = form_named("attention_decode").make(Caches::cold)->feature_count() + 1 + raw_feature_count;
  sweep.residual = constant_trees(features, 0.7F);
  for (double& width : sweep.half_widths.by_time) width = 0.05;
  write(sweep);
  const LearnedKernels learned(hardware().device("h100_sxm"), folder);
  const std::optional<LearnedTime> usual = learned.estimate(decode, "", Tier::best);
  ASSERT_TRUE(usual);
  EXPECT_EQ(usual->tier, Tier::measured);
  for (const char* name : {"fa3", "fa3_cold", "my_own_kernel"}) {
    const std::optional<LearnedTime> time = learned.estimate(decode, name, Tier::best);
    ASSERT_TRUE(time) << name;
    EXPECT_EQ(time->tier, Tier::measured) << name;
    EXPECT_EQ(time->seconds.value, usual->seconds.value) << name;
  }
  const auto half_width = [](const std::optional<LearnedTime>& time) {
    return std::log(time->seconds.high / time->seconds.value);
  };
  EXPECT_EQ(half_width(learned.estimate(decode, "fa3", Tier::best)), half_width(usual));
  EXPECT_GT(half_width(learned.estimate(decode, "my_own_kernel", Tier::best)), 0.25) << "it may be any kernel";
  EXPECT_EQ(learned.estimate(decode, "fa2", Tier::best)->tier, Tier::cross) << "known, and not swept here";
}

TEST_F(LearnedKernelsTest, a_group_that_is_harder_to_predict_has_a_wider_interval) {
  DeviceCalibration usual = measured_norms("h100_sxm"), harder = usual;
  harder.width_factors["rms_norm"] = 3;
  const NormShape shape{.rows = 1024, .width = 2048};
  write(usual);
  const LearnedTime before = ask(shape).value();
  write(harder);
  const LearnedTime after = ask(shape).value();
  EXPECT_EQ(after.seconds.value, before.seconds.value);
  EXPECT_NEAR(std::log(after.seconds.high / after.seconds.value),
              3 * std::log(before.seconds.high / before.seconds.value), 1e-9);
}

TEST_F(LearnedKernelsTest, tiers_have_names) {
  for (const Tier tier : {Tier::best, Tier::roofline, Tier::cross, Tier::measured})
    EXPECT_EQ(tier_from_name(tier_name(tier)), tier);
  EXPECT_EQ(tier_name(Tier::cross), "cross");
  EXPECT_EQ(tier_from_name("Cross"), std::nullopt);
}

TEST_F(LearnedKernelsTest, without_calibrations_there_is_no_answer) {
  EXPECT_FALSE(ask(norm));
  folder /= "never made";
  EXPECT_FALSE(ask(norm));
}

TEST_F(LearnedKernelsTest, a_family_without_a_form_has_no_answer) {
  write(start_calibration(form_named("memory")));
  EXPECT_FALSE(ask(ConvShape{}));
  EXPECT_FALSE(ask(CollectiveShape{}));
  EXPECT_FALSE(ask(decode));  // a form, but no file
  EXPECT_FALSE(ask(NormShape{.rows = 8, .width = 8, .pass = Pass::backward}));
}

TEST_F(LearnedKernelsTest, a_device_that_lacks_facts_has_no_answer) {
  write(start_calibration(form_named("memory")));
  for (const char* device : {"tpu_v5e", "xeon_8480", "gaudi3"}) EXPECT_FALSE(ask(norm, Tier::best, device)) << device;
}

TEST_F(LearnedKernelsTest, the_cross_tier_says_what_the_form_says_and_how_sure_it_is) {
  FormCalibration norms = start_calibration(form_named("memory"));
  norms.effects["operation rms_norm"] = std::vector<double>(norms.constants.size(), 0.0);
  write(norms);
  const std::optional<LearnedTime> time = ask(norm);
  ASSERT_TRUE(time);
  EXPECT_EQ(time->tier, Tier::cross);
  EXPECT_EQ(time->seconds.kind, Confidence::extrapolated);
  EXPECT_FALSE(time->inside_envelope);
  const double expected = unfitted(norm);
  EXPECT_NEAR(time->seconds.value, expected, 1e-5 * expected);  // constants are kept to six digits
  EXPECT_NEAR(time->seconds.low, time->seconds.value / std::exp(0.2), 1e-9 * expected);
  EXPECT_NEAR(time->seconds.high, time->seconds.value * std::exp(0.2), 1e-9 * expected);
  const std::optional<LearnedTime> unseen = ask(RopeShape{.tokens = 64, .heads = 32, .kv_heads = 8, .rotary_dim = 128});
  ASSERT_TRUE(unseen);
  EXPECT_NEAR(std::log(unseen->seconds.high / unseen->seconds.value), std::hypot(0.2, HalfWidths::of_no_rows), 1e-6)
      << "an operation that nobody measured";
}

TEST_F(LearnedKernelsTest, one_token_of_prefill_is_answered_by_the_decode_form) {
  write(start_calibration(form_named("attention_decode")));
  const AttentionShape one{.batch = 8, .heads = 32, .kv_heads = 8, .q_len = 1, .kv_len = 4096};
  const std::optional<LearnedTime> time = ask(one), decoded = ask(decode);
  ASSERT_TRUE(time && decoded);
  EXPECT_EQ(time->seconds.value, decoded->seconds.value);
  AttentionShape two = one;
  two.q_len = 2;
  EXPECT_FALSE(ask(two));
}

TEST_F(LearnedKernelsTest, the_measured_tier_comes_first_and_knows_its_envelope) {
  write(start_calibration(form_named("memory")));
  write(measured_norms("h100_sxm"));
  const std::optional<LearnedTime> inside = ask(norm);
  ASSERT_TRUE(inside);
  EXPECT_EQ(inside->tier, Tier::measured);
  EXPECT_EQ(inside->seconds.kind, Confidence::interpolated);
  EXPECT_TRUE(inside->inside_envelope);
  EXPECT_NEAR(inside->seconds.value, std::exp(0.5) * unfitted(norm), 1e-4 * inside->seconds.value);
  EXPECT_NEAR(std::log(inside->seconds.high / inside->seconds.low), 2 * 0.05, 1e-9);

  const std::optional<LearnedTime> outside = ask(NormShape{.rows = 4096, .width = 16384});
  ASSERT_TRUE(outside);
  EXPECT_FALSE(outside->inside_envelope);
  EXPECT_EQ(outside->seconds.kind, Confidence::extrapolated);
  // An octave outside: half as wide again, and part of the 0.2 of an unseen generation.
  const double expected = std::hypot(1.5 * 0.05, (1 - std::exp2(-0.5)) * 0.2);
  EXPECT_NEAR(std::log(outside->seconds.high / outside->seconds.low), 2 * expected, 1e-6);

  // Another device has no part in it.
  const std::optional<LearnedTime> other = ask(norm, Tier::best, "a100_sxm");
  ASSERT_TRUE(other);
  EXPECT_EQ(other->tier, Tier::cross);
}

TEST_F(LearnedKernelsTest, a_group_that_was_not_measured_borrows_what_the_device_has_in_common) {
  FormCalibration cross = start_calibration(form_named("memory"));
  write(cross);
  DeviceCalibration device = measured_norms("h100_sxm");
  const KernelShape rope = RopeShape{.tokens = 100000, .heads = 32, .kv_heads = 8};
  const double before = ask(rope)->seconds.value;
  for (size_t k = 0; k < device.constants.size(); ++k)
    device.shared[k] = device.constants[k] == "dram_slowdown" ? 0.2 : 0;
  write(device);
  const std::optional<LearnedTime> after = ask(rope);
  ASSERT_TRUE(after);
  EXPECT_EQ(after->tier, Tier::cross);
  EXPECT_GT(after->seconds.value, 1.1 * before);
  EXPECT_NEAR(ask(rope, Tier::cross)->seconds.value, before, 1e-12);  // the bare cross tier has not seen the device
  EXPECT_FALSE(ask(rope, Tier::measured));

  // Never beyond the bounds of the form: dram_slowdown is at most 2.
  for (size_t k = 0; k < device.constants.size(); ++k)
    device.shared[k] = device.constants[k] == "dram_slowdown" ? 10 : 0;
  write(device);
  EXPECT_LT(ask(rope)->seconds.value, 2.1 / 1.15 * before);
}

TEST_F(LearnedKernelsTest, a_tier_can_be_forced) {
  write(start_calibration(form_named("memory")));
  EXPECT_FALSE(ask(norm, Tier::measured));
  write(measured_norms("h100_sxm"));
  EXPECT_EQ(ask(norm, Tier::measured)->tier, Tier::measured);
  EXPECT_EQ(ask(norm, Tier::cross)->tier, Tier::cross);
  EXPECT_FALSE(ask(norm, Tier::roofline));
  std::filesystem::remove(form_calibration_path(folder, "memory"));
  EXPECT_EQ(ask(norm)->tier, Tier::measured);
  EXPECT_FALSE(ask(norm, Tier::cross));
}

TEST_F(LearnedKernelsTest, the_cross_tier_leaves_out_what_is_odd_about_the_device_only_when_asked_for) {
  FormCalibration calibration = start_calibration(form_named("memory"));
  calibration.effects["device h100_sxm"] = std::vector<double>(calibration.constants.size(), 0.1);
  write(calibration);
  EXPECT_NE(ask(norm, Tier::best)->seconds.value, ask(norm, Tier::cross)->seconds.value);
  EXPECT_EQ(ask(norm, Tier::best, "a100_sxm")->seconds.value, ask(norm, Tier::cross, "a100_sxm")->seconds.value);
}

TEST_F(LearnedKernelsTest, constants_of_another_foretoken_are_refused_with_file_and_key) {
  FormCalibration calibration = start_calibration(form_named("memory"));
  calibration.constants[1] = "renamed";
  write(calibration);
  const InputProblem problem = problem_of([&] { ask(norm); });
  EXPECT_EQ(problem.source, form_calibration_path(folder, "memory").string());
  EXPECT_EQ(problem.path, "constants");
  // A failed reading is tried again, not remembered as an empty answer.
  const LearnedKernels learned(hardware().device("h100_sxm"), folder);
  EXPECT_THROW(learned.estimate(norm, "", Tier::best), InputError);
  EXPECT_THROW(learned.estimate(norm, "", Tier::best), InputError);
}

TEST_F(LearnedKernelsTest, trees_over_other_features_are_refused) {
  FormCalibration calibration = start_calibration(form_named("memory"));
  calibration.residual = constant_trees(200, 0.5F);
  calibration.residual_strength = 1;
  write(calibration);
  const InputProblem problem = problem_of([&] { ask(norm); });
  EXPECT_EQ(problem.source, form_calibration_path(folder, "memory").string());
  EXPECT_EQ(problem.path, "residual.feature_count");
  DeviceCalibration device = measured_norms("h100_sxm");
  device.residual = constant_trees(9, 0.5F);
  write(start_calibration(form_named("memory")));
  write(device);
  EXPECT_EQ(problem_of([&] { ask(norm); }).path, "residual.feature_count");
}

TEST_F(LearnedKernelsTest, a_file_under_the_name_of_another_is_refused) {
  // Prefill and encoder have the same constants: only the name tells them apart.
  write_file(form_calibration_path(folder, "attention_encoder"),
             calibration_json(start_calibration(form_named("attention_prefill"))));
  const AttentionShape encoder{
      .phase = AttentionPhase::encoder, .heads = 8, .kv_heads = 8, .q_len = 64, .kv_len = 64, .causal = false};
  EXPECT_EQ(problem_of([&] { ask(encoder); }).path, "form");
  write(measured_norms("h100_sxm"));
  std::filesystem::rename(folder / "h100_sxm", folder / "h200_sxm");
  EXPECT_EQ(problem_of([&] { ask(norm, Tier::best, "h200_sxm"); }).path, "device");
}

TEST_F(LearnedKernelsTest, kernels_of_a_stack_are_predicted_by_its_own_calibration_else_by_the_general_one) {
  const KernelShape gemm = GemmShape{.m = 64, .n = 4096, .k = 4096};
  write(start_calibration(form_named("gemm")));
  const LearnedKernels without(hardware().device("h100_sxm"), folder);
  ASSERT_TRUE(without.estimate(gemm, "trtllm", Tier::best).has_value());

  FormCalibration slower = start_calibration(form_named("gemm_trtllm"));
  slower.effects["common"][0] = std::log(30000);  // clocks of an empty call
  write(slower);
  const LearnedKernels with(hardware().device("h100_sxm"), folder);
  const auto seconds = [&](std::string_view variant) {
    return with.estimate(gemm, variant, Tier::best)->seconds.value;
  };
  EXPECT_EQ(seconds(""), without.estimate(gemm, "", Tier::best)->seconds.value);
  EXPECT_EQ(seconds("torch_linear"), seconds(""));
  EXPECT_GT(seconds("trtllm"), seconds("") + 10e-6);
}

TEST_F(LearnedKernelsTest, a_prefill_of_one_token_is_a_decode_except_to_tensorrt_llm) {
  const AttentionShape one{.heads = 8, .kv_heads = 8, .q_len = 1, .kv_len = 64};
  EXPECT_EQ(form_family(one), "attention_decode");
  EXPECT_EQ(form_family(one, "fa3"), "attention_decode");
  EXPECT_EQ(form_family(one, "trtllm"), "attention_prefill");
}

TEST_F(LearnedKernelsTest, many_threads_may_ask_the_first_question_at_once) {
  for (const FormKind& kind : form_kinds()) write(start_calibration(kind));
  write(measured_norms("h100_sxm"));
  const double expected = ask(norm)->seconds.value;
  for (int round = 0; round < 5; ++round) {
    const LearnedKernels learned(hardware().device("h100_sxm"), folder);
    std::vector<std::thread> threads;
    std::vector<double> answers(4, 0.0);
    for (double& answer : answers) {
      threads.emplace_back([&learned, &answer] {
        learned.estimate(decode, "", Tier::best);
        answer = learned.estimate(norm, "", Tier::best)->seconds.value;
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const double answer : answers) EXPECT_EQ(answer, expected);
  }
}

TEST_F(LearnedKernelsTest, a_batch_of_one_kind_and_length_is_a_plain_call) {
  for (const char* form : {"attention_prefill", "attention_decode", "attention_mixed"})
    write(start_calibration(form_named(form)));
  MixedAttentionShape decodes{.heads = 32, .kv_heads = 8};
  decodes.add_decodes(8, 4096);
  EXPECT_EQ(ask(decodes)->seconds.value, ask(decode)->seconds.value);
  MixedAttentionShape prompts{.heads = 32, .kv_heads = 8};
  prompts.add_prompts(2, 300, 900);
  const KernelShape prefill = AttentionShape{.batch = 2, .heads = 32, .kv_heads = 8, .q_len = 300, .kv_len = 900};
  EXPECT_EQ(ask(prompts)->seconds.value, ask(prefill)->seconds.value);
}

TEST_F(LearnedKernelsTest, prompts_and_decodes_are_one_launch_or_two_as_the_kernel_has_it) {
  for (const char* form : {"attention_prefill", "attention_decode"}) write(start_calibration(form_named(form)));
  MixedAttentionShape prompts{.heads = 32, .kv_heads = 8}, decodes{.heads = 32, .kv_heads = 8};
  prompts.add_prompts(1, 300, 900);
  decodes.add_decodes(4, 100);
  decodes.add_decodes(4, 700);
  MixedAttentionShape both = prompts;
  both.add_decodes(4, 100);
  both.add_decodes(4, 700);
  const auto apart = ask(both, Tier::best, "b200_sxm");  // TensorRT-LLM's kernels
  ASSERT_TRUE(apart.has_value());
  const auto first = ask(prompts, Tier::best, "b200_sxm"), second = ask(decodes, Tier::best, "b200_sxm");
  EXPECT_DOUBLE_EQ(apart->seconds.value, first->seconds.value + second->seconds.value);
  EXPECT_DOUBLE_EQ(apart->seconds.high, first->seconds.high + second->seconds.high);
  EXPECT_FALSE(ask(both).has_value());  // FlashAttention 3: needs the form of mixed batches
  write(start_calibration(form_named("attention_mixed")));
  EXPECT_TRUE(ask(both).has_value());
}

TEST_F(LearnedKernelsTest, cold_keys_come_from_memory) {
  write(start_calibration(form_named("attention_decode")));
  const KernelShape small = AttentionShape{
      .phase = AttentionPhase::decode, .batch = 32, .heads = 32, .kv_heads = 8, .kv_len = 256, .writes_kv = true};
  const Device device = hardware().device("rtx_pro_6000_server");  // 128 MB of L2 for 34 MB of keys
  const double cold = LearnedKernels(device, folder, Caches::cold).estimate(small, "", Tier::cross)->seconds.value;
  const double warm = LearnedKernels(device, folder, Caches::benchmark).estimate(small, "", Tier::cross)->seconds.value;
  EXPECT_GT(cold, 1.2 * warm);
}

}  // namespace foretoken::learned_test
