#include "app/cli/grammar/money.h"

#include <gtest/gtest.h>

namespace foretoken::money_test {

TEST(Money, is_read_as_people_write_it) {
  for (const char* text : {"1.9", "$1.9", "1.9/h", "$1.9/h", "$1.9/hr", "$1.9/HOUR"}) {
    ASSERT_TRUE(parse_usd_per_hour(text)) << text;
    EXPECT_EQ(*parse_usd_per_hour(text), 1.9) << text;
  }
  EXPECT_EQ(parse_usd("$250k"), 250'000);
  EXPECT_EQ(parse_usd("2.5M"), 2'500'000);
  EXPECT_FALSE(parse_usd("$28/h"));
  EXPECT_EQ(parse_usd_per_time("$7300/month"), 10);
  EXPECT_EQ(parse_usd_per_time("240/day"), 10);
  EXPECT_EQ(parse_usd_per_time("$7.3k/month"), 10);
  for (const char* text : {"", "$", "/h", "1.9/", "1.9/week", "1.9 dollars", "$$1", "k", "1kk"}) {
    EXPECT_FALSE(parse_usd_per_time(text)) << text;
  }
  EXPECT_FALSE(parse_usd_per_hour("$7300/month"));
}

}  // namespace foretoken::money_test
