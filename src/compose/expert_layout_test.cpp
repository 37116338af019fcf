#include "compose/expert_layout.h"

#include <gtest/gtest.h>

#include "compose/engine_release.h"
#include "compose/serving_memory.h"
#include "hardware/catalogue.h"
#include "model/catalogue.h"

namespace foretoken::expert_layout_test {

Model model(const char* name) {
  return ModelCatalogue(FORETOKEN_SOURCE_DIR "/data/models").model(name);
}

Device device(const char* name) {
  return HardwareCatalogue(FORETOKEN_SOURCE_DIR "/data/hardware").device(name);
}

// "Model loading took" of gpt-oss-120b on one H100: 65.9651 GiB with 0.10.1 and Marlin (vllm-project/vllm, issue
// 23278), 64.38 with 0.14.1 and Triton (issue 33155).
TEST(ExpertLayout, gpt_oss_takes_what_vllm_logged) {
  const auto gib = [](const char* engine) {
    const EngineFlags flags{.engine = engine, .max_model_len = 8192};
    return serving_memory(model("gpt-oss-120b"), device("h100_sxm"), {}, flags).weights.value / gibi;
  };
  EXPECT_NEAR(gib("vllm-0.10.1"), 65.9651, 0.15);
  EXPECT_NEAR(gib("vllm-0.14.1"), 64.38, 0.15);
  EXPECT_LT(gib("vllm"), 61.5) << "since 0.25 the checkpoint's scales are freed";
}

TEST(ExpertLayout, each_tensor_rank_pads_its_own_part) {
  const Model gpt_oss = model("gpt-oss-120b");
  const ExpertLayout marlin = vllm_experts_before_012(gpt_oss, device("a100_sxm"));
  const auto added = [&](const ParallelPlan& plan) { return expert_layout_bytes(gpt_oss, plan, 0, marlin).value(); };
  const auto expected = [](double width, double padded, double experts) {
    const double weights = 3 * (3072 * padded - 2880 * width) * 17 / 32;
    return 36 * experts * (weights + 2 * (2 * (padded - width) + 3072 - 2880));
  };
  EXPECT_NEAR(added({}), expected(2880, 2944, 128), 1);
  EXPECT_NEAR(added({.tensor = 8}), expected(360, 384, 128), 1);
  EXPECT_GT(8 * added({.tensor = 8}), added({}));
  EXPECT_NEAR(added({.tensor = 4, .expert = 4}), expected(2880, 2944, 32), 1) << "whole experts";
  EXPECT_NEAR(added({.pipeline = 2}), added({}) / 2, 1);
}

TEST(ExpertLayout, other_formats_and_sizes_that_fit_take_what_the_checkpoint_does) {
  const ExpertLayout marlin = vllm_experts_before_012(model("gpt-oss-20b"), device("l40s"));
  EXPECT_EQ(expert_layout_bytes(model("Qwen3-30B-A3B"), {}, 0, marlin).value(), 0);
  Model fits = model("gpt-oss-20b");
  fits.hidden = 3072;
  for (Layer& layer : fits.layers) std::get<Moe>(layer.feed_forward).width = 2944;
  EXPECT_EQ(expert_layout_bytes(fits, {}, 0, marlin).value(), 0);
  EXPECT_EQ(expert_layout("sglang", model("gpt-oss-20b"), device("h100_sxm")), ExpertLayout{});
}

TEST(ExpertLayout, the_kernel_follows_the_device_and_the_release) {
  const Model gpt_oss = model("gpt-oss-20b");
  const auto layout = [&](const char* engine, const char* name) {
    return expert_layout(engine, gpt_oss, device(name));
  };
  for (const char* ours : {"a100_sxm", "l40s", "rtx_pro_6000_server"}) {
    EXPECT_EQ(layout("vllm", ours).width, 128) << ours;
    EXPECT_EQ(layout("vllm-0.10.2", ours), layout("vllm", ours)) << ours;
  }
  EXPECT_EQ(layout("vllm-0.11.2", "h100_sxm"), layout("vllm", "a100_sxm"));
  EXPECT_GT(layout("vllm-0.12", "h100_sxm").scale_rows, 0);
  EXPECT_FALSE(layout("vllm-0.24", "h100_sxm").drops_read_scales);
  EXPECT_TRUE(layout("vllm-0.25", "h100_sxm").drops_read_scales);
  EXPECT_EQ(layout("vllm-0.14", "b200_sxm").width, 256);
  EXPECT_EQ(layout("vllm-0.14", "mi300x").hidden, 256);
  Model other = gpt_oss;
  other.family = "deepseek_v4";
  EXPECT_EQ(vllm_experts(other, device("h100_sxm")), vllm_experts_before_012(other, device("h100_sxm")))
      << "Triton's kernels run gpt-oss alone";
}

}  // namespace foretoken::expert_layout_test
