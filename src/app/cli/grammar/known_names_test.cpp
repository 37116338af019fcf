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

}  // namespace foretoken::known_names_test
