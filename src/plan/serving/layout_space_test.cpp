#include "plan/serving/layout_space.h"

#include <gtest/gtest.h>

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

}  // namespace foretoken::layout_space_test
