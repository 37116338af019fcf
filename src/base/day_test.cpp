#include "base/day.h"

#include <gtest/gtest.h>

namespace foretoken::day_test {

TEST(IsDay, year_month_and_day_with_all_their_digits) {
  for (const char* day : {"2026-11-17", "2024-02-29", "1999-12-31"}) EXPECT_TRUE(is_day(day)) << day;
  for (const char* other : {"", "today", "2026-11", "2026-1-17", "2026-13-01", "2026-11-32", "17-11-2026", "2026/11/17",
                            "2026-11-17T00:00", "2026-11-1x"}) {
    EXPECT_FALSE(is_day(other)) << other;
  }
}

}  // namespace foretoken::day_test
