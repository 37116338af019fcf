#include "plan/suite/suite_answers.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken::suite_answers_test {

const std::vector<SuiteCard> two_cards = {{.id = "T1"}, {.id = "T2"}};

SuiteAnswers read(const std::string& text) {
  CsvReader reader = CsvReader::from_text(text, "answers.csv");
  return read_suite_answers(reader, two_cards);
}

TEST(SuiteAnswers, what_is_written_is_read_again) {
  const std::vector<SuiteAnswer> written = {{.id = "T2", .value = 0.1, .low = 0.05, .high = 0.2},
                                            {.id = "T1", .value = 3},
                                            {.id = "gemm, small",
                                             .value = 2,
                                             .level = SuiteLevel::kernel,
                                             .group = "us",
                                             .size = 64,
                                             .measured = 2.5,
                                             .withheld = {Withheld::hardware, Withheld::time},
                                             .part_of = "T1",
                                             .source = "a \"paper\""}};
  const std::vector<SuiteAnswer> answers = read(suite_answers_csv(written)).answers;
  ASSERT_EQ(answers.size(), 3U);
  EXPECT_EQ(answers[0].value, 0.1);
  EXPECT_EQ(answers[0].high, 0.2);
  EXPECT_FALSE(answers[1].low);
  EXPECT_EQ(answers[2].id, "gemm, small");
  EXPECT_EQ(answers[2].level, SuiteLevel::kernel);
  EXPECT_EQ(answers[2].measured, 2.5);
  EXPECT_EQ(answers[2].withheld, written[2].withheld);
  EXPECT_EQ(answers[2].part_of, "T1");
  EXPECT_EQ(answers[2].source, written[2].source);
}

TEST(SuiteAnswers, an_empty_value_is_a_case_the_tool_cannot_answer) {
  const SuiteAnswers answers = read("scenario,value\nT1,\nT2,4\n");
  EXPECT_EQ(answers.unanswered, 1U);
  ASSERT_EQ(answers.answers.size(), 1U);
  EXPECT_EQ(answers.answers[0].id, "T2");
}

TEST(SuiteAnswers, wrong_rows_are_refused) {
  for (const char* text :
       {"scenario,value\nT1,1\nT1,2\n", "scenario,value\nT3,1\n", "scenario,value\nT1,0\n", "scenario,value\nT1,-1\n",
        "scenario\nT1\n", "scenario,value,level,group,measured\nx,1,kernels,g,1\n",
        "scenario,value,level,group,measured\nx,1,kernel,,1\n", "scenario,value,level,group,measured\nx,1,kernel,g,0\n",
        "scenario,value,withheld\nT1,1,hardwear\n",
        "scenario,value,level,group,measured,part_of\nx,1,kernel,g,1,y\n"}) {
    EXPECT_THROW(read(text), InputError) << text;
  }
}

}  // namespace foretoken::suite_answers_test
