#include "plan/serving/layout_space.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

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
            "TP12: tensor parallelism across nodes must use whole nodes, and nodes of h100_sxm have 8 GPUs");
}

TEST(LayoutSpace, ranks_never_hold_parts_of_scale_blocks) {
  ServingQuestion question = nodes_question("Qwen3-235B-A22B-FP8");  // experts of 1536 channels
  EXPECT_TRUE(offers_tensor_size(question, 4));
  EXPECT_FALSE(offers_tensor_size(question, 8));
  EXPECT_TRUE(offers_tensor_size(question, 8, true));
  EXPECT_TRUE(offers_tensor_size(nodes_question("Qwen3-235B-A22B"), 8));
}

std::vector<ServingLayout> deepep_layouts(const ServingQuestion& question, const char* engine) {
  std::vector<ServingLayout> found;
  for (const ServingLayout& layout : layout_space(question).layouts) {
    const bool sends = layout.pool.engine.deepep || (layout.decode && layout.decode->engine.deepep);
    if (sends && layout.pool.engine.engine == engine) found.push_back(layout);
  }
  return found;
}

TEST(LayoutSpace, deepep_is_offered_where_the_engine_and_the_devices_have_it) {
  ServingQuestion question = nodes_question("DeepSeek-R1");
  question.choices.engines = {"vllm", "sglang", "trtllm"};
  EXPECT_FALSE(deepep_layouts(question, "vllm").empty());
  EXPECT_FALSE(deepep_layouts(question, "sglang").empty());
  EXPECT_TRUE(deepep_layouts(question, "trtllm").empty());
  const HardwareCatalogue hardware(FORETOKEN_SOURCE_DIR "/data/hardware");
  for (const char* device : {"a100_sxm", "mi300x"}) {
    question.hardware[0].device = hardware.device(device);
    question.hardware[0].node = hardware.node_with(question.hardware[0].device);
    EXPECT_TRUE(deepep_layouts(question, "vllm").empty()) << device;
    EXPECT_TRUE(deepep_layouts(question, "sglang").empty()) << device;
  }
}

TEST(LayoutSpace, experts_fill_three_six_and_nine_nodes_with_copies_where_they_do_not_divide) {
  ServingQuestion question = nodes_question("DeepSeek-R1");
  question.choices.engines = {"sglang"};
  question.hardware[0].most_devices = 72;
  std::map<int64_t, int64_t> copies;  // by ranks
  for (const ServingLayout& layout : layout_space(question).layouts) {
    const EngineChoice& engine = layout.pool.engine;
    if (!layout.decode && engine.attention_ranks > 1) copies[engine.plan().expert] = engine.expert_copies;
  }
  const std::map<int64_t, int64_t> expected = {{2, 0},  {4, 0},   {8, 0},  {16, 0}, {24, 8},
                                               {32, 0}, {48, 32}, {64, 0}, {72, 32}};
  EXPECT_EQ(copies, expected);
}

TEST(LayoutSpace, one_kind_of_deepep_kernels_serves_one_kind_of_pool) {
  ServingQuestion question = nodes_question("DeepSeek-R1");
  question.choices.engines = {"vllm"};
  for (const ServingLayout& layout : deepep_layouts(question, "vllm")) {
    ASSERT_TRUE(layout.decode) << layout.key();
    EXPECT_NE(layout.pool.engine.deepep, ExchangeKernels::low_latency) << layout.key();
    EXPECT_NE(layout.decode->engine.deepep, ExchangeKernels::normal) << layout.key();
  }
}

TEST(LayoutSpace, ranks_with_deepep_have_the_engines_whole_limit_each_and_the_memory_of_its_guides) {
  ServingQuestion question = nodes_question("DeepSeek-R1");
  question.choices.engines = {"sglang"};
  const std::vector<ServingLayout> layouts = deepep_layouts(question, "sglang");
  const auto wide = std::find_if(layouts.begin(), layouts.end(), [](const ServingLayout& layout) {
    return !layout.decode && layout.pool.engine.attention_ranks == 16;
  });
  ASSERT_NE(wide, layouts.end());
  EXPECT_EQ(wide->pool.max_num_batched_tokens, 16 * 8192);
  EXPECT_EQ(wide->pool.memory_fraction, 0.85);
  EXPECT_EQ(layout_text(*wide), "1 x TP1 DP16 EP16 DeepEP, as configured, KV bf16, sglang, 131072 tokens/step");
  question.memory_fraction = 0.7;
  EXPECT_EQ(deepep_layouts(question, "sglang").front().pool.memory_fraction, 0);
}

}  // namespace foretoken::layout_space_test
