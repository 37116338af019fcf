#include "plan/study/study_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken::study_file_test {

constexpr const char* small_study = R"(
title: Two models
models: [Llama-3.1-8B, Qwen3-8B]
hardware: [1xH100, [1xL40S, 1xL4]]
traffic:
  - chat
  - {name: long, random_input_len: 8000, request_rate: 2}
engines: [vllm]
settings: {quick: true, random_input_len: 512}
)";

std::string refusal(const std::string& text) {
  try {
    parse_study(text, "study.yaml");
  } catch (const InputError& error) {
    return error.what();
  }
  return "not refused";
}

TEST(StudyFile, has_a_case_for_every_combination_in_the_order_of_the_lists) {
  const Study study = parse_study(small_study, "study.yaml");
  EXPECT_EQ(study.title, "Two models");
  ASSERT_EQ(study.cases.size(), 8u);
  EXPECT_EQ(study.cases[0].model, "Llama-3.1-8B");
  EXPECT_EQ(study.cases[0].traffic, "chat");
  EXPECT_EQ(study.cases[1].traffic, "long");
  EXPECT_EQ(study.cases[2].hardware, "1xL40S, 1xL4");
  EXPECT_EQ(study.cases[4].model, "Qwen3-8B");
}

TEST(StudyFile, fields_of_the_traffic_win_over_those_of_all_cases) {
  const Study study = parse_study(small_study, "study.yaml");
  EXPECT_EQ(study.cases[0].question.dump(0),
            R"({"command":"plan serve","quick":true,"random_input_len":512,"model":"Llama-3.1-8B",)"
            R"("hardware":"1xH100","traffic":"chat","engines":"vllm"})");
  EXPECT_EQ(study.cases[1].question.find("random_input_len")->integer(), 8000);
  EXPECT_EQ(study.cases[1].question.find("name"), nullptr);
}

TEST(StudyFile, without_engines_one_case_tries_all) {
  const Study study = parse_study("models: [a]\nhardware: 1xH100\ntraffic: chat\n", "study.yaml");
  ASSERT_EQ(study.cases.size(), 1u);
  EXPECT_EQ(study.cases[0].engines, "all");
  EXPECT_EQ(study.cases[0].question.find("engines"), nullptr);
  EXPECT_EQ(study.title, "study.yaml");
}

TEST(StudyFile, errors_name_the_line_and_what_is_expected) {
  using testing::AllOf;
  using testing::HasSubstr;
  EXPECT_THAT(refusal("models: [a]\nhardwear: [1xH100]\ntraffic: chat"),
              AllOf(HasSubstr("study.yaml:2"), HasSubstr("did you mean hardware?")));
  EXPECT_THAT(refusal("models: [a]\nhardware: [1xH100]"), HasSubstr("traffic"));
  EXPECT_THAT(refusal("models: []\nhardware: [1xH100]\ntraffic: chat"), HasSubstr("a list of 1 to"));
  EXPECT_THAT(refusal("models:\n  - a\n  - a\nhardware: [1xH100]\ntraffic: chat"),
              AllOf(HasSubstr("study.yaml:3"), HasSubstr("models[1]")));
  EXPECT_THAT(refusal("models: [a]\nhardware: [1xH100]\ntraffic:\n  - {store: x}\n"),
              AllOf(HasSubstr("study.yaml:4"), HasSubstr("no store here")));
  EXPECT_THAT(refusal("models: [a]\nhardware: [1xH100]\ntraffic: chat\nsettings: [1]"), HasSubstr("a map of fields"));
  EXPECT_THAT(refusal("[1, 2]"), HasSubstr("a map with models"));
  EXPECT_THAT(refusal(""), HasSubstr("an empty file"));
  EXPECT_THAT(refusal("models: [a"), HasSubstr("study.yaml"));
}

TEST(StudyFile, too_many_cases_are_refused) {
  std::string names;
  for (int i = 0; i < 200; ++i) names += (i > 0 ? ", m" : "m") + std::to_string(i);
  EXPECT_THAT(refusal("models: [" + names + "]\nhardware: [" + names + "]\ntraffic: chat"),
              testing::HasSubstr("these make 40000"));
}

}  // namespace foretoken::study_file_test
