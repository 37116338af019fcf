#include "base/bytes.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/random.h"

namespace foretoken::bytes_test {

TEST(Bytes, what_is_written_reads_back_the_same) {
  ByteWriter writer;
  writer.put(uint8_t{200});
  writer.put(int16_t{-2});
  writer.put(uint32_t{0xDEADBEEF});
  writer.put(std::numeric_limits<int64_t>::min());
  writer.put(-0.1F);
  writer.put(std::numeric_limits<double>::denorm_min());
  writer.put("text");
  writer.put("");
  ByteReader reader(writer.bytes());
  EXPECT_EQ(reader.get<uint8_t>(), 200);
  EXPECT_EQ(reader.get<int16_t>(), -2);
  EXPECT_EQ(reader.get<uint32_t>(), 0xDEADBEEF);
  EXPECT_EQ(reader.get<int64_t>(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(reader.get<float>(), -0.1F);
  EXPECT_EQ(reader.get<double>(), std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(reader.text(), "text");
  EXPECT_EQ(reader.text(), "");
  EXPECT_EQ(reader.left(), 0u);
  EXPECT_FALSE(reader.ran_over());
}

TEST(Bytes, numbers_are_little_endian_on_every_machine) {
  ByteWriter writer;
  writer.put(uint32_t{0x01020304});
  EXPECT_EQ(writer.bytes(), (std::vector<uint8_t>{4, 3, 2, 1}));
}

TEST(Bytes, beyond_the_end_all_is_zero_and_told) {
  const std::vector<uint8_t> three = {1, 2, 3};
  ByteReader reader(three);
  EXPECT_EQ(reader.get<uint32_t>(), 0u);
  EXPECT_TRUE(reader.ran_over());
  EXPECT_EQ(reader.text(), "");
  ByteWriter writer;
  writer.put(std::numeric_limits<uint64_t>::max());  // a text longer than memory
  ByteReader text_reader(writer.bytes());
  EXPECT_EQ(text_reader.text(), "");
  EXPECT_TRUE(text_reader.ran_over());
}

TEST(Bytes, one_or_two_flipped_bits_and_another_length_change_the_digest) {
  RandomStream random(1, "bytes");
  std::vector<uint8_t> bytes(35);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.below(256));
  const uint64_t whole = digest(bytes);
  const auto flip = [&](size_t bit) { bytes[bit / 8] = static_cast<uint8_t>(bytes[bit / 8] ^ 1U << bit % 8); };
  for (size_t first = 0; first < 8 * bytes.size(); ++first) {
    flip(first);
    ASSERT_NE(digest(bytes), whole) << first;
    for (size_t second = first + 1; second < 8 * bytes.size(); ++second) {
      flip(second);
      ASSERT_NE(digest(bytes), whole) << first << " and " << second;
      flip(second);
    }
    flip(first);
  }
  EXPECT_NE(digest(std::vector<uint8_t>(8)), digest(std::vector<uint8_t>(16)));
  EXPECT_NE(digest(std::vector<uint8_t>()), digest(std::vector<uint8_t>(1)));
}

}  // namespace foretoken::bytes_test
