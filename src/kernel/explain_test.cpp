#include "kernel/explain.h"

#include <gtest/gtest.h>

#include "kernel/test_support.h"

namespace foretoken::explain_test {

using namespace test_support;

const std::filesystem::path calibrations = FORETOKEN_SOURCE_DIR "/data/kernels/calibrations";

KernelPredictor predictor_of(const char* name, Tier tier = Tier::best) {
  const Device device = hardware().device(name);
  return KernelPredictor(device, {},
                         std::make_shared<LearnedKernels>(device, calibrations, Caches::cold,
                                                          swept_devices(device, hardware(), calibrations)),
                         tier);
}

const GemmShape layer{.m = 4096, .n = 8192, .k = 8192};

TEST(ExplainKernel, explains_the_very_estimate_that_is_made_without_asking_why) {
  for (const char* device : {"h100_sxm", "rtx_4090", "gb200", "v100_sxm"}) {
    const KernelPredictor predictor = predictor_of(device);
    for (const KernelFamily& family : kernel_families()) {
      RandomStream random(1, family.name);
      const KernelShape shape = random_shape(family, random);
      const KernelExplanation explanation = explain_kernel(predictor, shape, "", calibrations);
      const KernelEstimate plain = predictor.estimate(shape);
      EXPECT_EQ(explanation.estimate.seconds.value, plain.seconds.value) << device << " " << family.name;
      EXPECT_EQ(explanation.estimate.tier, plain.tier);
      EXPECT_NEAR(explanation.efficiency * plain.seconds.value, explanation.roofline_seconds, 1e-12);
      EXPECT_FALSE(explanation.interval.reading.empty());
      if (explanation.lines.empty()) continue;
      EXPECT_NEAR(explanation.form_seconds * explanation.correction, plain.seconds.value, 1e-9 * plain.seconds.value);
    }
  }
}

TEST(ExplainKernel, says_which_measurements_the_interval_rests_on) {
  EXPECT_EQ(explain_kernel(predictor_of("h100_sxm"), layer, "", calibrations).interval.basis, "held-out rows");
  EXPECT_EQ(explain_kernel(predictor_of("h100_sxm", Tier::cross), layer, "", calibrations).interval.basis,
            "withheld generations");
  EXPECT_EQ(explain_kernel(predictor_of("gb200"), layer, "", calibrations).interval.basis, "sibling");
  EXPECT_EQ(explain_kernel(predictor_of("gb200"), layer, "", calibrations).swept_device, "b200_sxm");
  EXPECT_EQ(explain_kernel(predictor_of("gaudi3"), layer, "", calibrations).interval.basis, "roofline");
}

TEST(ExplainKernel, a_size_beyond_the_sweep_is_the_one_that_is_outside) {
  const KernelPredictor predictor = predictor_of("h100_sxm");
  const KernelExplanation inside = explain_kernel(predictor, layer, "", calibrations);
  ASSERT_FALSE(inside.envelope.empty());
  EXPECT_TRUE(inside.estimate.inside_envelope);
  for (const EnvelopeSize& size : inside.envelope) EXPECT_TRUE(size.inside()) << size.name;

  const KernelExplanation outside =
      explain_kernel(predictor, GemmShape{.m = 50'000'000, .n = 8192, .k = 8192}, "", calibrations);
  EXPECT_FALSE(outside.estimate.inside_envelope);
  for (const EnvelopeSize& size : outside.envelope) {
    const bool grew = size.name == "m" || size.name == "m x n";
    EXPECT_EQ(size.inside(), !grew) << size.name << " " << size.value << " of " << size.least << " to " << size.most;
  }
}

TEST(ExplainKernel, a_device_without_a_sweep_is_held_against_the_sizes_of_all_others) {
  const KernelExplanation explanation = explain_kernel(predictor_of("rtx_3090"), layer, "", calibrations);
  ASSERT_FALSE(explanation.envelope.empty());
  EXPECT_EQ(explanation.swept_device, "");
  for (const EnvelopeSize& size : explanation.envelope) EXPECT_TRUE(size.inside()) << size.name;
}

TEST(ExplainKernel, names_the_implementation_that_was_assumed) {
  EXPECT_EQ(explain_kernel(predictor_of("h100_sxm"), layer, "", calibrations).variant, "torch_linear");
  const AttentionShape prefill{.batch = 1, .heads = 32, .kv_heads = 8, .q_len = 512, .kv_len = 512};
  EXPECT_EQ(explain_kernel(predictor_of("h100_sxm"), prefill, "", calibrations).variant, "fa3");
  EXPECT_EQ(explain_kernel(predictor_of("h100_sxm"), prefill, "fa4", calibrations).variant, "fa4");
}

}  // namespace foretoken::explain_test
