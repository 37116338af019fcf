#include "base/protobuf.h"

#include <fmt/format.h>

#include "base/error.h"

namespace foretoken {

void WireReader::fail(std::string value, std::string expected) const {
  throw InputError({.source = *source_,
                    .path = fmt::format("byte {}", offset()),
                    .value = std::move(value),
                    .expected = std::move(expected)});
}

uint64_t WireReader::varint() {
  constexpr int most_bits = 64;
  uint64_t value = 0;
  size_t at = position_;
  for (int shift = 0; shift < most_bits; shift += 7) {
    if (at == message_.size()) fail("the message ends inside a number", "a complete protobuf message");
    const auto byte = static_cast<uint8_t>(message_[at++]);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) {
      if (shift == 63 && byte > 1) break;
      position_ = at;
      return value;
    }
  }
  fail("a number of more than 64 bits", "a protobuf varint of at most 10 bytes");
}

uint64_t WireReader::fixed(size_t width) {
  if (message_.size() - position_ < width) fail("the message ends inside a number", "a complete protobuf message");
  uint64_t value = 0;
  for (size_t i = 0; i < width; ++i) {
    value |= static_cast<uint64_t>(static_cast<uint8_t>(message_[position_ + i])) << (8 * i);
  }
  position_ += width;
  return value;
}

uint64_t WireReader::fixed32() {
  return fixed(4);
}

uint64_t WireReader::fixed64() {
  return fixed(8);
}

std::string_view WireReader::delimited(size_t most) {
  const size_t begin = position_;
  const uint64_t length = varint();
  const size_t left = message_.size() - position_;
  if (length > left || length > most) {
    position_ = begin;
    fail(fmt::format("a length of {} bytes", length),
         length > left ? fmt::format("at most {}, which is what is left: the file may be cut off", left)
                       : fmt::format("at most {}", most));
  }
  const std::string_view result = message_.substr(position_, length);
  position_ += length;
  return result;
}

bool WireReader::next(WireField& field) {
  if (at_end()) return false;
  const size_t begin = position_;
  const uint64_t tag = varint();
  const auto kind = static_cast<int>(tag & 7);
  constexpr uint64_t largest_number = (uint64_t{1} << 29) - 1;
  if (tag >> 3 == 0 || tag >> 3 > largest_number) {
    position_ = begin;
    fail(fmt::format("field number {}", tag >> 3), "a protobuf field number from 1 to 536870911");
  }
  field.number = static_cast<uint32_t>(tag >> 3);
  field.value = 0;
  field.bytes = {};
  switch (kind) {
    case 0:
      field.value = varint();
      break;
    case 1:
      field.value = fixed64();
      break;
    case 2:
      field.bytes = delimited(message_.size());
      break;
    case 5:
      field.value = fixed32();
      break;
    default:
      position_ = begin;
      fail(fmt::format("field {} of wire type {}", field.number, kind), "wire type 0, 1, 2 or 5");
  }
  field.kind = static_cast<WireKind>(kind);
  field.whole = message_.substr(begin, position_ - begin);
  return true;
}

WireReader WireReader::inside(const WireField& field) const {
  return {field.bytes, *source_, offset() - field.bytes.size()};
}

void WireWriter::tag(uint32_t number, WireKind kind) {
  packed_varint(uint64_t{number} << 3 | static_cast<uint64_t>(kind));
}

void WireWriter::varint(uint32_t number, uint64_t value) {
  tag(number, WireKind::varint);
  packed_varint(value);
}

void WireWriter::fixed32(uint32_t number, uint32_t value) {
  tag(number, WireKind::fixed32);
  packed_fixed32(value);
}

void WireWriter::fixed64(uint32_t number, uint64_t value) {
  tag(number, WireKind::fixed64);
  packed_fixed64(value);
}

void WireWriter::bytes(uint32_t number, std::string_view value) {
  tag(number, WireKind::bytes);
  packed_varint(value.size());
  text_ += value;
}

void WireWriter::packed_varint(uint64_t value) {
  for (; value >= 0x80; value >>= 7) text_ += static_cast<char>(value | 0x80);
  text_ += static_cast<char>(value);
}

void WireWriter::packed_fixed32(uint32_t value) {
  for (int i = 0; i < 4; ++i) text_ += static_cast<char>(value >> (8 * i));
}

void WireWriter::packed_fixed64(uint64_t value) {
  for (int i = 0; i < 8; ++i) text_ += static_cast<char>(value >> (8 * i));
}

}  // namespace foretoken
