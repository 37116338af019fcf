#include "compose/engine_release.h"

#include <regex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "compose/serving_engine.h"
#include "compose/stack.h"

namespace foretoken::engine_release_test {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(EngineRelease, a_family_with_a_number_is_a_release) {
  EXPECT_EQ(engine_release("vllm-0.12.1")->family, "vllm");
  EXPECT_EQ(engine_release("vllm-0.12.1")->version, "0.12.1");
  EXPECT_EQ(engine_release("SGLang-0.5.9")->number, (ReleaseNumber{0, 5, 9}));
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

TEST(EngineRelease, a_family_is_the_name_without_a_number) {
  for (const char* family : {"vllm", "sglang", "trtllm"}) EXPECT_TRUE(has_releases(family)) << family;
  for (const char* none : {"", "vllm-0.19", "vllm-0.12", "other"}) EXPECT_FALSE(has_releases(none)) << none;
}

TEST(EngineRelease, the_pattern_takes_the_names_that_are_read) {
  const std::string families[] = {"vllm", "sglang", "trtllm"};
  const std::regex pattern(release_pattern(families), std::regex::ECMAScript);
  for (const char* name : {"vllm-0.12.1", "vllm-v0.12", "vllm-V0.12", "vllm==0.12", "trtllm-1.3.0rc5",
                           "sglang-0.5.10.post1", "vllm", "vllm=0.12", "vllm0.12", "vllm-", "vllm==", "vllm-v",
                           "vllm-new", "vllm-1", "other-0.1", "vllm-.5", "vllm--1.0"}) {
    EXPECT_EQ(std::regex_search(name, pattern), engine_release(name).has_value()) << name;
  }
}

TEST(EngineRelease, a_release_is_the_kind_that_behaves_like_it) {
  EXPECT_EQ(engine_kind("vllm-0.12").name, "vllm-0.19");
  EXPECT_EQ(engine_kind("vllm-0.24.0").name, "vllm");
  EXPECT_EQ(engine_kind("vllm-0.6.3").name, "vllm-0.7");
  EXPECT_EQ(engine_kind("trtllm-1.1").name, "trtllm");
  EXPECT_THROW(engine_kind("vllm-newest"), InputError);
}

TEST(EngineRelease, of_vllm_change_what_is_usual_one_after_the_other) {
  const auto of = [](std::string_view version) { return release_behavior("vllm", version); };
  EXPECT_EQ(of("0.7.3").scheduler, "vllm_v0");
  EXPECT_EQ(of("0.7.3").stack, "vllm-0.6");
  EXPECT_EQ(of("0.7.3").kind, "vllm-0.7");
  EXPECT_EQ(of("0.8.0").kind, "vllm-0.19");
  EXPECT_EQ(of("0.8.0").scheduler, "vllm");
  EXPECT_EQ(of("0.10.2").stack, "vllm-0.10");
  EXPECT_EQ(of("0.13.0rc1").stack, "vllm-0.11");
  EXPECT_FALSE(of("0.13.0").schedules_ahead);
  EXPECT_TRUE(of("0.14.0").schedules_ahead);
  EXPECT_EQ(of("0.16").stack, "vllm-0.14");
  EXPECT_EQ(of("0.17").stack, "vllm");
  EXPECT_EQ(of("0.20.1").kind, "vllm-0.19");
  EXPECT_EQ(of("0.21.0").kind, "vllm");
  for (const char* newest : {"", "nightly", "1", "1.0.0"}) EXPECT_EQ(of(newest).kind, "vllm") << newest;
}

TEST(EngineRelease, of_sglang_hides_the_host_of_drafts_since_0_5_11) {
  const auto of = [](std::string_view version) { return release_behavior("sglang", version); };
  for (const char* older : {"0.4.9", "0.5.9", "0.5.10", "0.5.10.post1", "0.5.6rc1"}) {
    EXPECT_EQ(of(older).stack_with_drafts, "sglang-0.5.10") << older;
    EXPECT_EQ(of(older).stack, "sglang") << older;
  }
  for (const char* newer : {"0.5.11", "0.5.12.post1", "0.6.0", "1.0", "main", ""}) {
    EXPECT_EQ(of(newer).stack_with_drafts, "sglang") << newer;
  }
}

TEST(EngineRelease, behavior_is_of_kinds_and_stacks_that_exist) {
  const StackCatalogue stacks(FORETOKEN_SOURCE_DIR "/data/stacks");
  for (const ReleaseBehavior& one : release_behaviors()) {
    EXPECT_EQ(engine_kind(one.kind).family, one.family);
    EXPECT_EQ(stacks.stack(std::string(one.stack)).name, one.stack);
    EXPECT_EQ(stacks.stack(std::string(one.stack_with_drafts)).name, one.stack_with_drafts);
  }
  const Stack older = stacks.stack("sglang-0.5.10"), newer = stacks.stack("sglang");
  EXPECT_GT(older.costs.step_host, newer.costs.step_host);
  EXPECT_EQ(older.costs.front.piece, newer.costs.front.piece);
}

TEST(EngineRelease, one_newer_or_older_than_what_was_fitted_is_said) {
  for (const char* older : {"vllm-0.3", "sglang-0.1", "trtllm-0.99"}) {
    EXPECT_THAT(unfitted_release_note(older), HasSubstr("is older than the runs")) << older;
  }
  EXPECT_THAT(unfitted_release_note("vllm==0.3.1"), HasSubstr("vLLM 0.3.1 is older"));
  EXPECT_THAT(unfitted_release_note("vllm-0.6.0"), IsEmpty());
  EXPECT_THAT(unfitted_release_note("vllm-0.10"), IsEmpty());
  EXPECT_THAT(unfitted_release_note("trtllm-1.0"), IsEmpty());
  EXPECT_THAT(unfitted_release_note("vllm-0.31.2"), HasSubstr("vLLM 0.31.2 is newer"));
  EXPECT_THAT(unfitted_release_note("vllm-0.21"), HasSubstr("vLLM 0.21 is newer"));
  EXPECT_THAT(unfitted_release_note("vllm-0.19.1"), IsEmpty());
  EXPECT_THAT(unfitted_release_note("vllm"), IsEmpty());
  EXPECT_THAT(unfitted_release_note("sglang-0.6"), HasSubstr("SGLang 0.5"));
  EXPECT_THAT(unfitted_release_note("sglang-0.5.12"), IsEmpty());
  EXPECT_THAT(unfitted_release_note("sglang-0.5.12.post1"), IsEmpty());
  EXPECT_THAT(unfitted_release_note("sglang-0.5.14"), HasSubstr("SGLang 0.5.14 is newer"));
}

TEST(EngineRelease, newest_fitted_releases_are_those_that_stacks_name) {
  const StackCatalogue stacks(FORETOKEN_SOURCE_DIR "/data/stacks");
  for (const auto& [engine, newest] :
       {std::pair("vllm-9.9", "0.19"), std::pair("sglang-9.9", "0.5.12"), std::pair("trtllm-9.9", "1.3")}) {
    const std::string stack(release_behavior(engine_release(engine)->family, "9.9").stack);
    EXPECT_THAT(stacks.stack(stack).origin.software, HasSubstr(newest)) << stack;
    EXPECT_THAT(unfitted_release_note(engine), HasSubstr(std::string("to ") + newest)) << stack;
  }
}

}  // namespace foretoken::engine_release_test
