#include "base/protobuf.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken::protobuf_test {

const std::string source = "test.et";

std::string complaint(std::string_view message) {
  WireReader reader(message, source, 100);
  WireField field;
  try {
    while (reader.next(field)) {
    }
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Protobuf, every_kind_of_field_reads_back_as_written) {
  WireWriter writer;
  writer.varint(1, 300);
  writer.varint(2, std::numeric_limits<uint64_t>::max());
  writer.fixed32(3, 0xdeadbeef);
  writer.fixed64(4, 0x0123456789abcdef);
  writer.bytes(536870911, "text");
  WireReader reader(writer.text(), source);
  WireField field;
  ASSERT_TRUE(reader.next(field));
  EXPECT_EQ(field.number, 1U);
  EXPECT_EQ(field.value, 300U);
  ASSERT_TRUE(reader.next(field));
  EXPECT_EQ(field.value, std::numeric_limits<uint64_t>::max());
  ASSERT_TRUE(reader.next(field));
  EXPECT_EQ(field.kind, WireKind::fixed32);
  EXPECT_EQ(field.value, 0xdeadbeefU);
  ASSERT_TRUE(reader.next(field));
  EXPECT_EQ(field.kind, WireKind::fixed64);
  EXPECT_EQ(field.value, 0x0123456789abcdefU);
  ASSERT_TRUE(reader.next(field));
  EXPECT_EQ(field.number, 536870911U);
  EXPECT_EQ(field.bytes, "text");
  EXPECT_FALSE(reader.next(field));
}

TEST(Protobuf, the_encoding_is_that_of_the_specification) {
  WireWriter writer;
  writer.varint(1, 150);
  writer.bytes(2, "testing");
  EXPECT_EQ(writer.text(), std::string("\x08\x96\x01\x12\x07testing"));
}

TEST(Protobuf, fields_laid_end_to_end_are_the_message) {
  WireWriter writer;
  writer.varint(7, 1);
  writer.bytes(1000, "kept");
  writer.fixed32(3, 9);
  std::string together;
  WireReader reader(writer.text(), source);
  WireField field;
  while (reader.next(field)) together += field.whole;
  EXPECT_EQ(together, writer.text());
}

TEST(Protobuf, every_cut_is_noticed_with_its_place) {
  WireWriter writer;
  writer.bytes(1, "abc");
  writer.fixed64(2, 5);
  writer.varint(3, 1 << 20);
  const size_t ends[] = {0, 5, 14, writer.text().size()};
  for (size_t length = 0; length < writer.text().size(); ++length) {
    const bool at_a_field = std::find(std::begin(ends), std::end(ends), length) != std::end(ends);
    const std::string message = complaint(std::string_view(writer.text()).substr(0, length));
    EXPECT_EQ(message.empty(), at_a_field) << length << ": " << message;
    EXPECT_EQ(message.find("byte 1") != std::string::npos, !at_a_field) << message;
  }
}

TEST(Protobuf, hostile_numbers_are_refused) {
  EXPECT_NE(complaint(std::string(1, '\x08') + std::string(10, '\xff')).find("64 bits"), std::string::npos);
  EXPECT_NE(complaint(std::string("\x08") + std::string(9, '\xff') + "\x02").find("64 bits"), std::string::npos);
  EXPECT_EQ(complaint(std::string("\x08") + std::string(9, '\xff') + "\x01"), "");
  EXPECT_NE(complaint("\x0a\xff\xff\xff\xff\x7f").find("a length of 34359738367 bytes"), std::string::npos);
  EXPECT_NE(complaint("\x0b").find("wire type 3"), std::string::npos);
  EXPECT_NE(complaint(std::string(1, '\0')).find("field number 0"), std::string::npos);
}

TEST(Protobuf, zigzag_is_its_own_inverse_and_short_near_zero) {
  for (const int64_t value : {int64_t{0}, int64_t{-1}, int64_t{1}, std::numeric_limits<int64_t>::min(),
                              std::numeric_limits<int64_t>::max()}) {
    EXPECT_EQ(from_zigzag(zigzag(value)), value);
  }
  EXPECT_EQ(zigzag(-1), 1U);
  EXPECT_EQ(zigzag(1), 2U);
}

}  // namespace foretoken::protobuf_test
