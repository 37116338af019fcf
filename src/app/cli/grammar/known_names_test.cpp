#include "app/cli/grammar/known_names.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"

namespace foretoken::known_names_test {

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
