#include "base/byte_size.h"

#include <gtest/gtest.h>

namespace foretoken::byte_size_test {

TEST(ByteSize, units_are_decimal_or_binary_as_written) {
  EXPECT_EQ(parse_bytes("200GiB"), 200 * 0x1p30);
  EXPECT_EQ(parse_bytes("1.5TB"), 1.5e12);
  EXPECT_EQ(parse_bytes("4096"), 4096);
  EXPECT_EQ(parse_bytes("0B"), 0);
}

TEST(ByteSize, a_rate_may_say_per_second_and_a_size_may_not) {
  EXPECT_EQ(parse_bytes("50GB/s", true), 50e9);
  EXPECT_EQ(parse_bytes("50GB", true), 50e9);
  EXPECT_FALSE(parse_bytes("50GB/s"));
}

TEST(ByteSize, anything_else_is_nothing) {
  for (const char* text : {"", "GB", "-1GB", "1 GB", "1Gb", "1e400", "inf", "nan", "1GBB", "/s"}) {
    EXPECT_FALSE(parse_bytes(text, true)) << text;
  }
}

}  // namespace foretoken::byte_size_test
