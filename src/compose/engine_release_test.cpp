#include "compose/engine_release.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "compose/serving_engine.h"

namespace foretoken::engine_release_test {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(EngineRelease, a_family_with_a_number_is_a_release) {
  EXPECT_EQ(engine_release("vllm-0.12.1")->family, "vllm");
  EXPECT_EQ(engine_release("vllm-0.12.1")->version, "0.12.1");
  EXPECT_EQ(engine_release("SGLang-0.5.9")->number, (ReleaseNumber{0, 5}));
  EXPECT_EQ(engine_release("trtllm-1.3.0rc5")->number, (ReleaseNumber{1, 3}));
  for (const char* none : {"vllm", "vllm-", "vllm-new", "vllm-1", "other-0.1", "vllm-.5", "vllm--1.0"}) {
    EXPECT_FALSE(engine_release(none)) << none;
  }
}

TEST(EngineRelease, a_release_is_the_kind_that_behaves_like_it) {
  EXPECT_EQ(engine_kind("vllm-0.12").name, "vllm-0.19");
  EXPECT_EQ(engine_kind("vllm-0.24.0").name, "vllm");
  EXPECT_EQ(engine_kind("trtllm-1.1").name, "trtllm");
  EXPECT_THROW(engine_kind("vllm-newest"), InputError);
}

TEST(EngineRelease, one_newer_than_what_was_fitted_is_said) {
  EXPECT_THAT(newer_release_note("vllm-0.31.2"), HasSubstr("vLLM 0.31.2 is newer"));
  EXPECT_THAT(newer_release_note("vllm-0.24.1"), IsEmpty());
  EXPECT_THAT(newer_release_note("vllm"), IsEmpty());
  EXPECT_THAT(newer_release_note("sglang-0.6"), HasSubstr("SGLang 0.5"));
}

}  // namespace foretoken::engine_release_test
