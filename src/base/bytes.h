// Numbers and texts as little-endian bytes, whatever the machine, and back.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace foretoken {

class ByteWriter {
 public:
  template <class Number>
  requires std::is_arithmetic_v<Number>
  void put(Number number) {
    const auto word = std::bit_cast<Word<sizeof(Number)>>(number);
    for (size_t i = 0; i < sizeof word; ++i) bytes_.push_back(static_cast<uint8_t>(word >> (8 * i) & 255));
  }
  void put(std::string_view text);  // its length first
  void append(std::span<const uint8_t> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }

  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  friend class ByteReader;
  // The unsigned number of so many bytes.
  template <size_t size>
  using Word =
      std::conditional_t<size == 1, uint8_t,
                         std::conditional_t<size == 2, uint16_t, std::conditional_t<size == 4, uint32_t, uint64_t>>>;
  std::vector<uint8_t> bytes_;
};

// Reads what a ByteWriter wrote. Beyond the end all is zero and empty, which ran_over() tells afterwards.
class ByteReader {
 public:
  explicit ByteReader(std::span<const uint8_t> bytes) : rest_(bytes) {}

  template <class Number>
  requires std::is_arithmetic_v<Number> Number get() {
    using Word = ByteWriter::Word<sizeof(Number)>;
    const std::span<const uint8_t> bytes = take(sizeof(Word));
    if (bytes.empty()) return Number{};
    Word word = 0;
    for (size_t i = 0; i < sizeof(Word); ++i) word = static_cast<Word>(word | static_cast<Word>(bytes[i]) << (8 * i));
    return std::bit_cast<Number>(word);
  }
  std::string text();
  // The next `count` bytes; none when fewer are left.
  std::span<const uint8_t> take(size_t count) {
    ran_over_ = ran_over_ || count > rest_.size();
    const std::span<const uint8_t> taken = rest_.first(ran_over_ ? 0 : count);
    rest_ = ran_over_ ? std::span<const uint8_t>() : rest_.subspan(count);
    return taken;
  }

  size_t left() const { return rest_.size(); }
  bool ran_over() const { return ran_over_; }

 private:
  std::span<const uint8_t> rest_;
  bool ran_over_ = false;
};

// Tells whether bytes are still the same: words of eight bytes are multiplied in one after the other, with the high
// bits folded back so that no two flipped bits cancel. No protection against intent.
uint64_t digest(std::span<const uint8_t> bytes);
uint64_t digest(std::string_view text);

}  // namespace foretoken
