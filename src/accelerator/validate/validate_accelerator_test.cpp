#include <gtest/gtest.h>

#include <cstdlib>

#include "accelerator/validate/validate_accelerator.h"
#include "base/file.h"

namespace foretoken::validate_accelerator_test {

TEST(ChipFigures, every_shipped_file_of_published_figures_is_read) {
  const std::filesystem::path shipped = FORETOKEN_SOURCE_DIR "/data/accelerators";
  const Validation validation = validate_accelerator({.data = shipped / "published", .shipped = shipped});
  EXPECT_TRUE(validation.skipped.empty()) << validation.skipped.front().why;
  EXPECT_EQ(validation.groups.size(), file_stems(shipped / "published").size());
  for (const ValidationGroup& group : validation.groups) EXPECT_GT(group.errors.n, 0u) << group.name;
}

TEST(PublishedCasesNeedsData, every_file_of_other_tools_is_met) {
  const char* folder = std::getenv("FORETOKEN_DATA");
  if (folder == nullptr) GTEST_SKIP() << "FORETOKEN_DATA is not set";
  const Validation validation = validate_accelerator(
      {.data = std::filesystem::path(folder) / "accelerator", .shipped = FORETOKEN_SOURCE_DIR "/data/accelerators"});
  EXPECT_TRUE(validation.skipped.empty()) << validation.skipped.front().why;
  EXPECT_EQ(validation.groups.size(), 6u);
  for (const ValidationGroup& group : validation.groups) {
    EXPECT_GT(group.errors.n, 100u) << group.name;
    EXPECT_LT(group.errors.mape, 0.001) << group.name;
  }
}

}  // namespace foretoken::validate_accelerator_test
