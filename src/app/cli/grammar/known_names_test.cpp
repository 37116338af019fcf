#include "app/cli/grammar/known_names.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"

namespace foretoken::known_names_test {

TEST(KnownNames, a_flag_of_another_command_suggests_what_this_one_calls_it) {
  const std::vector<std::string> of_plan = {"--hardware", "--model"}, of_serve = {"--device", "--devices", "--model"};
  EXPECT_EQ(flag_meant("--device", of_plan), "--hardware 8xH100");
  EXPECT_EQ(flag_meant("--hardware", of_serve), "--device with --devices");
  EXPECT_EQ(flag_meant("--modle", of_serve), "--model");
}

TEST(KnownNames, words_of_people_mean_flags_that_the_command_has) {
  const std::vector<std::string> of_serve = {"--device",          "--trace",        "--request-rate",
                                             "--gpu-mtbf",        "--quantization", "--tensor-parallel-size",
                                             "--random-input-len"};
  const std::vector<std::string> of_train = {"--devices", "--sharding", "--precision", "--train-tokens"};
  for (const char* word : {"--rate", "--qps", "--rps"}) EXPECT_EQ(flag_meant(word, of_serve), "--request-rate");
  EXPECT_EQ(flag_meant("--qps", of_train), "");
  EXPECT_EQ(flag_meant("--gpu", of_serve), "--device");
  EXPECT_EQ(flag_meant("--gpus", of_serve), "--tensor-parallel-size");
  EXPECT_EQ(flag_meant("--gpus", of_train), "--devices");
  EXPECT_EQ(flag_meant("--input-len", of_serve), "--random-input-len");
  EXPECT_EQ(flag_meant("--fp8", of_serve), "--quantization fp8");
  EXPECT_EQ(flag_meant("--fp8", of_train), "--precision fp8");
  EXPECT_EQ(flag_meant("--fsdp", of_train), "--sharding parameters");
  EXPECT_EQ(flag_meant("--tokens", of_train), "--train-tokens");
  EXPECT_EQ(flag_meant("-q", std::vector<std::string>{"--device", "--dtype"}), "--dtype");
}

TEST(KnownNames, subcommands_have_other_names_too) {
  const std::vector<std::string> of_profile = {"cuda", "rocm", "cpu"};
  EXPECT_EQ(name_meant("gpu", of_profile), "cuda");
  EXPECT_EQ(name_meant("cpuu", of_profile), "cpu");
  EXPECT_EQ(name_meant("gpu", std::vector<std::string>{"gpus"}), "gpus");
  EXPECT_EQ(name_meant("x.json", std::vector<std::string>{"data", "file"}), "file x.json");
}

TEST(KnownNames, an_unknown_one_is_refused_with_the_nearest) {
  const std::vector<std::string> known = {"megatron", "mosaic-foundry"};
  EXPECT_NO_THROW(check_names("--sources", known, known));
  const std::vector<std::string> given = {"megatron", "mosaik-foundry"};
  try {
    check_names("--sources", given, known);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().source, "--sources");
    EXPECT_EQ(error.problem().value, "mosaik-foundry");
    EXPECT_EQ(error.problem().suggestion, "mosaic-foundry");
  }
}

TEST(KnownNames, words_that_nobody_would_see_stand_in_quotes) {
  EXPECT_EQ(shown_word(""), "\"\"");
  EXPECT_EQ(shown_word("  "), "\"  \"");
  EXPECT_EQ(shown_word("h100 sxm"), "h100 sxm");
}

}  // namespace foretoken::known_names_test
