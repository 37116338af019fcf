#include <gtest/gtest.h>

#include "accelerator/validate/validate_accelerator.h"
#include "base/file.h"

namespace foretoken {
namespace {

TEST(ChipFigures, every_shipped_file_of_published_figures_is_read) {
  const std::filesystem::path shipped = FORETOKEN_SOURCE_DIR "/data/accelerators";
  const Validation validation = validate_accelerator({.data = shipped / "published", .shipped = shipped});
  EXPECT_TRUE(validation.skipped.empty()) << validation.skipped.front().why;
  EXPECT_EQ(validation.groups.size(), json_stems(shipped / "published").size());
  for (const ValidationGroup& group : validation.groups) EXPECT_GT(group.errors.n, 0u) << group.name;
}

}  // namespace
}  // namespace foretoken
