#include "accelerator/architecture.h"

#include <gtest/gtest.h>

namespace foretoken::architecture_test {

TEST(Architecture, buffers_that_leave_no_word_are_not_unlimited) {
  const Architecture chip{
      .name = "chip",
      .levels = {{.name = "memory", .depth = 1, .buffers = 2}, {.name = "multiplier", .kind = LevelKind::compute}}};
  EXPECT_EQ(architecture_fault(chip), "level memory: 2 buffers leave no word for each");
}

}  // namespace foretoken::architecture_test
