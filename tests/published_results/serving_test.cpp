// Operating points of serving engines that were published, against simulated ones.
#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "library/library.h"
#include "validate/serving/validate_serving.h"

namespace foretoken::serving_test {

TEST(PublishedServingNeedsData, vllm_on_hopper_and_blackwell_with_known_options) {
  const char* folder = std::getenv("FORETOKEN_DATA");
  if (folder == nullptr) GTEST_SKIP() << "FORETOKEN_DATA is not set";
  const Library library(FORETOKEN_SOURCE_DIR "/data");
  const Validation validation = validate_serving({.data = std::filesystem::path(folder) / "serving" / "cases.csv.gz",
                                                  .tiers = {"B"},
                                                  .engines = {"vllm"},
                                                  .kinds = {"dense"}},
                                                 library, serving_facts(library));
  ASSERT_EQ(validation.groups.size(), 2U);
  for (const ValidationGroup& group : validation.groups) {
    EXPECT_GE(group.errors.n, 100U) << group.name;
    EXPECT_LT(group.errors.median_ape, group.name == "B/tpot_ms" ? 4 : 9) << group.name;
  }
}

}  // namespace foretoken::serving_test
