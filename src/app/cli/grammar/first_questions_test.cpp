#include <sstream>

#include <gtest/gtest.h>

#include "app/cli/grammar/command_line.h"
#include "app/cli/grammar/declarations.h"
#include "base/text.h"

namespace foretoken::first_questions_test {

// Every command that the program names when it is called alone is one that it takes.
TEST(FirstQuestions, are_commands_of_the_program) {
  const Library library = Library::open();
  const Answer alone = answer_command({}, library);
  EXPECT_EQ(alone.text, first_questions);
  std::istringstream lines{std::string(first_questions)};
  int commands = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  foretoken ")) continue;
    std::vector<std::string> words;
    for (const std::string_view word : split_words(line, " ")) words.emplace_back(word);
    words.erase(words.begin());
    words.emplace_back("--print-spec");
    EXPECT_NO_THROW(answer_command(words, library)) << line;
    ++commands;
  }
  EXPECT_EQ(commands, 6);
}

TEST(Help, shows_the_flags_people_use_and_help_all_every_flag) {
  const Library library = Library::open();
  const std::string some = answer_command({"serve", "--help"}, library).text;
  const std::string all = answer_command({"serve", "--help-all"}, library).text;
  EXPECT_NE(some.find("--request-rate"), std::string::npos);
  EXPECT_EQ(some.find("--rag-passages"), std::string::npos);
  EXPECT_NE(some.find("more flags: foretoken serve --help-all"), std::string::npos);
  EXPECT_NE(all.find("--rag-passages"), std::string::npos);
  EXPECT_EQ(all.find("more flags"), std::string::npos);
  EXPECT_EQ(some.find("\n\n\n"), std::string::npos);
}

TEST(Help, of_a_switch_stands_in_the_column_of_all_others) {
  const std::string text = answer_command({"serve", "--help"}, Library::open()).text;
  const size_t line = text.find("  --energy,--no-energy ");
  ASSERT_NE(line, std::string::npos);
  EXPECT_EQ(text.find("Also report power") - line, 34U);
}

TEST(Explain, finds_terms_by_any_name_and_suggests_the_nearest) {
  const Library library = Library::open();
  EXPECT_TRUE(answer_command({"explain", "ttft"}, library).text.starts_with("TTFT"));
  EXPECT_TRUE(answer_command({"explain", "kv", "cache"}, library).text.starts_with("KV cache"));
  EXPECT_GT(answer_command({"explain"}, library).text.size(), 4000u);
  try {
    answer_command({"explain", "tpott"}, library);
    FAIL();
  } catch (const std::exception& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean tpot?"), std::string::npos) << error.what();
  }
}

}  // namespace foretoken::first_questions_test
