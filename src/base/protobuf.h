// The wire format of protocol buffers, without a schema: a message is fields one after the other, each a number, a kind
// and a value. (protobuf.dev, "Encoding".) Groups, which proto3 does not have, are refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace foretoken {

enum class WireKind : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

struct WireField {
  uint32_t number = 0;
  WireKind kind = WireKind::varint;
  uint64_t value = 0;      // varint, fixed32, fixed64
  std::string_view bytes;  // bytes: text, or a message inside
  std::string_view whole;  // the field as it stands, to keep one that nobody knows
};

// Walks over the fields of one message, or over numbers packed into one field. Never reads past the end: whatever is
// cut off or malformed is an InputError with its offset in the file. What it hands out points into the message.
class WireReader {
 public:
  // `source` must outlive the reader; `offset` is where the message starts in the file.
  WireReader(std::string_view message, const std::string& source, size_t offset = 0)
      : message_(message), source_(&source), offset_(offset) {}

  bool at_end() const { return position_ == message_.size(); }
  bool next(WireField& field);  // false at the end

  // The message inside a field that next() gave last.
  WireReader inside(const WireField& field) const;

  uint64_t varint();
  uint64_t fixed32();
  uint64_t fixed64();
  // As many bytes as the varint before them says, at most `most`.
  std::string_view delimited(size_t most);

  size_t offset() const { return offset_ + position_; }  // in the file, of what is read next
  [[noreturn]] void fail(std::string value, std::string expected) const;

 private:
  uint64_t fixed(size_t width);

  std::string_view message_;
  const std::string* source_;
  size_t offset_ = 0;
  size_t position_ = 0;
};

// Fields are appended in the order of the calls.
class WireWriter {
 public:
  void varint(uint32_t number, uint64_t value);
  void fixed32(uint32_t number, uint32_t value);
  void fixed64(uint32_t number, uint64_t value);
  void bytes(uint32_t number, std::string_view value);

  // Without a field around them: what is packed into one, or comes before a message in a stream of them.
  void packed_varint(uint64_t value);
  void packed_fixed32(uint32_t value);
  void packed_fixed64(uint64_t value);
  void raw(std::string_view encoded) { text_ += encoded; }

  const std::string& text() const { return text_; }
  std::string take() { return std::move(text_); }

 private:
  void tag(uint32_t number, WireKind kind);
  std::string text_;
};

// sint32 and sint64: small negative numbers are short too.
constexpr uint64_t zigzag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
}
constexpr int64_t from_zigzag(uint64_t value) {
  return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
}

}  // namespace foretoken
