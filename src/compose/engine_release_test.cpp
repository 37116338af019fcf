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
  for (const char* written : {"vllm-v0.12", "vllm==0.12", "vLLM-0.12"}) {
    ASSERT_TRUE(engine_release(written)) << written;
    EXPECT_EQ(release_name(*engine_release(written)), "vllm-0.12") << written;
  }
  for (const char* none : {"vllm", "vllm=0.12", "vllm0.12", "vllm-", "vllm==", "vllm-v", "vllm-new", "vllm-1",
                           "other-0.1", "vllm-.5", "vllm--1.0"}) {
    EXPECT_FALSE(engine_release(none)) << none;
  }
}

TEST(EngineRelease, a_release_is_the_kind_that_behaves_like_it) {
  EXPECT_EQ(engine_kind("vllm-0.12").name, "vllm-0.19");
  EXPECT_EQ(engine_kind("vllm-0.24.0").name, "vllm");
  EXPECT_EQ(engine_kind("trtllm-1.1").name, "trtllm");
  EXPECT_THROW(engine_kind("vllm-newest"), InputError);
}

TEST(EngineRelease, one_newer_or_older_than_what_was_fitted_is_said) {
  for (const char* older : {"vllm-0.3", "sglang-0.1", "trtllm-0.99"}) {
    EXPECT_THAT(unfitted_release_note(older), HasSubstr("is older than the releases")) << older;
  }
  EXPECT_THAT(unfitted_release_note("vllm==0.3.1"), HasSubstr("vLLM 0.3.1 is older"));
  EXPECT_THAT(unfitted_release_note("vllm-0.10"), IsEmpty());
  EXPECT_THAT(unfitted_release_note("trtllm-1.0"), IsEmpty());
  EXPECT_THAT(unfitted_release_note("vllm-0.31.2"), HasSubstr("vLLM 0.31.2 is newer"));
  EXPECT_THAT(unfitted_release_note("vllm-0.24.1"), IsEmpty());
  EXPECT_THAT(unfitted_release_note("vllm"), IsEmpty());
  EXPECT_THAT(unfitted_release_note("sglang-0.6"), HasSubstr("SGLang 0.5"));
}

}  // namespace foretoken::engine_release_test
