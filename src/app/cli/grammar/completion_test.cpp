#include "app/cli/grammar/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/cli/grammar/command.h"

namespace foretoken::completion_test {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

std::vector<std::string> offered(const std::vector<std::string>& words) {
  std::vector<std::string> all;
  for (const Completion& one : complete_words(words, Library(FORETOKEN_SOURCE_DIR "/data"))) all.push_back(one.word);
  return all;
}

TEST(Completion, begins_with_the_commands) {
  for (const CommandKind& kind : all_commands()) EXPECT_THAT(offered({""}), Contains(std::string(kind.name)));
  EXPECT_THAT(offered({"ser"}), ElementsAre("serve"));
  EXPECT_THAT(offered({"--ver"}), ElementsAre("--version"));
  EXPECT_THAT(offered({"serv", ""}), Contains("serve")) << "an unknown command is no reason to be silent";
}

TEST(Completion, goes_on_with_subcommands_and_their_flags) {
  EXPECT_THAT(offered({"kernel", "attention_d"}), ElementsAre("attention_decode"));
  EXPECT_THAT(offered({"kernel", "gemm", "--d"}), Contains("--device"));
  EXPECT_THAT(offered({"kernel", "gemm", "--k"}), Contains("--k"));
  EXPECT_THAT(offered({"kernel", "attention_decode", "--kv"}), Not(Contains("--k"))) << "a flag of another family";
  EXPECT_THAT(offered({"serve", "-t"}), Contains("-tp"));
}

TEST(Completion, offers_the_negation_of_a_flag_only_when_it_is_begun) {
  EXPECT_THAT(offered({"serve", "--"}), Not(Contains("--no-energy")));
  EXPECT_THAT(offered({"serve", "--no-e"}), Contains("--no-energy"));
}

TEST(Completion, knows_the_library_and_the_choices_of_a_flag) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"serve", "--device", "h200_s"}, {"serve", "--device", "=", "h200_s"}, {"devices", "h200_s"}}) {
    EXPECT_THAT(offered(words), ElementsAre("h200_sxm"));
  }
  EXPECT_THAT(offered({"serve", "--device=h200_s"}), ElementsAre("--device=h200_sxm"));
  EXPECT_THAT(offered({"step", "--device", "="}), Contains("h200_sxm"));
  EXPECT_THAT(offered({"models", "Llama-3.1-"}), Contains("Llama-3.1-8B"));
  EXPECT_THAT(offered({"step", "--phase", "pre"}), ElementsAre("prefill"));
  EXPECT_THAT(offered({"train", "--cluster", "h100_ib"}), Contains("h100_ib_rail"));
}

TEST(Completion, leaves_files_and_numbers_to_the_shell) {
  EXPECT_THAT(offered({"serve", "--trace", ""}), IsEmpty());
  EXPECT_THAT(offered({"serve", "--num-prompts", "1"}), IsEmpty());
}

TEST(Completion, has_a_script_for_each_shell) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    EXPECT_THAT(std::string(completion_script(shell)), testing::HasSubstr("completions words --typed="));
  }
}

}  // namespace foretoken::completion_test
