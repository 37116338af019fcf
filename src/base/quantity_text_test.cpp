#include "base/quantity_text.h"

#include <gtest/gtest.h>

namespace foretoken::quantity_text_test {

TEST(QuantityText, rates_are_bytes_or_bits_with_a_prefix) {
  EXPECT_EQ(parse_rate("450GB/s"), BytesPerSecond(450e9));
  EXPECT_EQ(parse_rate("1.5 TB/s"), BytesPerSecond(1.5e12));
  EXPECT_EQ(parse_rate("400Gb/s"), BytesPerSecond(50e9));
  EXPECT_EQ(parse_rate("400Gbps"), BytesPerSecond(50e9));
  EXPECT_EQ(parse_rate("8bit/s"), BytesPerSecond(1));
  EXPECT_EQ(parse_rate("1e3MB/s"), BytesPerSecond(1e9));
}

TEST(QuantityText, times_have_a_unit) {
  EXPECT_EQ(parse_duration("500ns"), Seconds(500e-9));
  EXPECT_EQ(parse_duration("1.5 us"), Seconds(1.5e-6));
  EXPECT_EQ(parse_duration("2ms"), Seconds(2e-3));
  EXPECT_EQ(parse_duration("3s"), Seconds(3));
  EXPECT_EQ(parse_duration("250ps"), Seconds(250e-12));
}

TEST(QuantityText, anything_else_is_nothing) {
  for (const char* text : {"", "GB/s", "450", "450GB", "450 GX/s", "-1GB/s", "1..5GB/s", "nanGB/s", "1GGB/s"}) {
    EXPECT_EQ(parse_rate(text), std::nullopt) << text;
  }
  for (const char* text : {"", "ns", "5", "5 minutes", "-1us", "1,5us", "5us "}) {
    EXPECT_EQ(parse_duration(text), std::nullopt) << text;
  }
}

}  // namespace foretoken::quantity_text_test
