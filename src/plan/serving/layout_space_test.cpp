#include "plan/serving/layout_space.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "model/catalogue.h"
#include "plan/serving/search_test_support.h"

namespace foretoken::layout_space_test {

bool offers_fp8_cache(const char* device) {
  ServingQuestion question = small_question();
  question.hardware[0].device = HardwareCatalogue(FORETOKEN_SOURCE_DIR "/data/hardware").device(device);
  question.choices.kv_dtypes = {DType::bf16, DType::fp8};
  bool offers = false, offers_own = false;
  for (const ServingLayout& layout : layout_space(question).layouts) {
    (layout.pool.engine.kv_dtype == DType::fp8 ? offers : offers_own) = true;
  }
  EXPECT_TRUE(offers_own) << device;
  return offers;
}

TEST(LayoutSpace, an_fp8_cache_is_offered_where_engines_keep_one) {
  for (const char* device : {"h100_sxm", "a100_sxm", "mi300x", "gaudi3", "tpu_v6e"}) {
    EXPECT_TRUE(offers_fp8_cache(device)) << device;
  }
  for (const char* device : {"t4", "v100_sxm", "m4_max", "mi250", "b60"}) {
    EXPECT_FALSE(offers_fp8_cache(device)) << device;
  }
}

TEST(LayoutSpace, a_device_without_the_asked_cache_format_says_so) {
  ServingQuestion question = small_question();
  question.hardware[0].device = HardwareCatalogue(FORETOKEN_SOURCE_DIR "/data/hardware").device("t4");
  question.choices.kv_dtypes = {DType::fp8};
  EXPECT_TRUE(layout_space(question).layouts.empty());
  EXPECT_EQ(why_no_layouts(question, question.hardware[0], "vllm"),
            "engines do not keep a KV cache in fp8 on this device");
}

ServingQuestion nodes_question(const char* model) {
  ServingQuestion question = small_question();
  const HardwareCatalogue hardware(FORETOKEN_SOURCE_DIR "/data/hardware");
  question.model = ModelCatalogue(FORETOKEN_SOURCE_DIR "/data/models").model(model);
  question.hardware[0].device = hardware.device("h100_sxm");
  question.hardware[0].node = hardware.node("hgx_h100");
  question.hardware[0].node_devices = 8;
  question.hardware[0].most_devices = 16;
  return question;
}

bool offers_tensor_size(const ServingQuestion& question, int64_t tensor, bool with_experts_apart = false) {
  const std::vector<ServingLayout> layouts = layout_space(question).layouts;
  return std::any_of(layouts.begin(), layouts.end(), [&](const ServingLayout& layout) {
    const EngineChoice& engine = layout.pool.engine;
    return engine.tensor == tensor && engine.pipeline == 1 && engine.attention_ranks == 1 &&
           engine.expert_parallel == with_experts_apart;
  });
}

TEST(LayoutSpace, tensor_ranks_fill_two_nodes_where_one_is_too_small_or_they_are_asked_for) {
  ServingQuestion large = nodes_question("DeepSeek-R1"), small = nodes_question("Llama-3.1-8B");
  EXPECT_TRUE(offers_tensor_size(large, 16));
  EXPECT_FALSE(offers_tensor_size(small, 16));
  small.choices.tensor = {16};
  EXPECT_TRUE(offers_tensor_size(small, 16));
  small.choices.tensor = {12};
  EXPECT_TRUE(layout_space(small).layouts.empty());
  EXPECT_EQ(why_no_layouts(small, small.hardware[0], "vllm"),
            "TP12: tensor parallelism over several nodes fills them, and nodes of h100_sxm have 8 GPUs");
}

TEST(LayoutSpace, ranks_never_hold_parts_of_scale_blocks) {
  ServingQuestion question = nodes_question("Qwen3-235B-A22B-FP8");  // experts of 1536 channels
  EXPECT_TRUE(offers_tensor_size(question, 4));
  EXPECT_FALSE(offers_tensor_size(question, 8));
  EXPECT_TRUE(offers_tensor_size(question, 8, true));
  EXPECT_TRUE(offers_tensor_size(nodes_question("Qwen3-235B-A22B"), 8));
}

}  // namespace foretoken::layout_space_test
