#include "serving/engine/vllm_release.h"

#include <gtest/gtest.h>

#include "compose/serving_engine.h"
#include "compose/stack.h"
#include "serving/scheduling/scheduler.h"

namespace foretoken::vllm_release_test {

TEST(VllmReleases, change_what_is_usual_one_after_the_other) {
  EXPECT_EQ(vllm_release("0.7.3").scheduler, "vllm_v0");
  EXPECT_EQ(vllm_release("0.7.3").stack, "vllm-0.6");
  EXPECT_EQ(vllm_release("0.8.0").scheduler, "vllm");
  EXPECT_EQ(vllm_release("0.10.2").stack, "vllm-0.10");
  EXPECT_EQ(vllm_release("0.13.0rc1").stack, "vllm-0.11");
  EXPECT_FALSE(vllm_release("0.13.0").async_scheduling);
  EXPECT_TRUE(vllm_release("0.14.0").async_scheduling);
  EXPECT_EQ(vllm_release("0.16").stack, "vllm-0.14");
  EXPECT_EQ(vllm_release("0.17").stack, "vllm");
  EXPECT_EQ(vllm_release("0.20.1").engine, "vllm-0.19");
  EXPECT_EQ(vllm_release("0.21.0").engine, "vllm");
}

TEST(VllmReleases, what_is_no_release_is_the_newest) {
  for (const char* text : {"", "nightly", "1", "1.0.0"}) EXPECT_EQ(vllm_release(text).engine, "vllm") << text;
}

TEST(VllmReleases, have_engines_schedulers_and_stacks_that_exist) {
  const StackCatalogue stacks(FORETOKEN_SOURCE_DIR "/data/stacks");
  for (int minor = 0; minor < 40; ++minor) {
    const VllmRelease release = vllm_release("0." + std::to_string(minor));
    EXPECT_EQ(engine_kind(release.engine).family, "vllm");
    EXPECT_EQ(scheduler_kind(release.scheduler).name, release.scheduler);
    EXPECT_EQ(stacks.stack(std::string(release.stack)).name, release.stack);
  }
}

}  // namespace foretoken::vllm_release_test
