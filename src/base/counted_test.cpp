#include "base/counted.h"

#include <gtest/gtest.h>

namespace foretoken::counted_test {

TEST(Counted, one_is_singular_and_all_others_are_plural) {
  EXPECT_EQ(counted(0, "row"), "0 rows");
  EXPECT_EQ(counted(1, "row"), "1 row");
  EXPECT_EQ(counted(size_t{2}, "kernel family"), "2 kernel families");
  EXPECT_EQ(counted(int64_t{3}, "micro-batch"), "3 micro-batches");
  EXPECT_EQ(counted(4, "pass"), "4 passes");
  EXPECT_EQ(counted(5, "key"), "5 keys");
  EXPECT_EQ(counted(6, "row of data"), "6 rows of data");
  EXPECT_EQ(counted(1, "row of data"), "1 row of data");
}

}  // namespace foretoken::counted_test
