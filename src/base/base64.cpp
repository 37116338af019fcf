#include "base/base64.h"

#include <array>

namespace foretoken {
namespace {

constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<int8_t, 256> digit_values() {
  std::array<int8_t, 256> values{};
  values.fill(-1);
  for (size_t i = 0; i < alphabet.size(); ++i) {
    values[static_cast<unsigned char>(alphabet[i])] = static_cast<int8_t>(i);
  }
  return values;
}

}  // namespace

std::string base64(std::span<const uint8_t> bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t left = std::min<size_t>(3, bytes.size() - i);
    uint32_t word = uint32_t{bytes[i]} << 16;
    if (left > 1) word |= uint32_t{bytes[i + 1]} << 8;
    if (left > 2) word |= bytes[i + 2];
    for (size_t digit = 0; digit < 4; ++digit) {
      text += digit <= left ? alphabet[word >> (18 - 6 * digit) & 63] : '=';
    }
  }
  return text;
}

std::optional<std::vector<uint8_t>> from_base64(std::string_view text) {
  static constexpr std::array<int8_t, 256> values = digit_values();
  if (text.size() % 4 != 0) return std::nullopt;
  std::vector<uint8_t> bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    const bool last = i + 4 == text.size();
    const size_t padding = !last || text[i + 3] != '=' ? 0 : (text[i + 2] == '=' ? 2 : 1);
    uint32_t word = 0;
    for (size_t digit = 0; digit < 4; ++digit) {
      const int value = digit >= 4 - padding ? 0 : values[static_cast<unsigned char>(text[i + digit])];
      if (value < 0) return std::nullopt;
      word = word << 6 | static_cast<uint32_t>(value);
    }
    for (size_t byte = 0; byte < 3 - padding; ++byte)
      bytes.push_back(static_cast<uint8_t>(word >> (16 - 8 * byte) & 255));
    // Bits behind the last byte must be zero, so that a text has one meaning.
    if (padding > 0 && (word & ((1U << (8 * padding)) - 1)) != 0) return std::nullopt;
  }
  return bytes;
}

}  // namespace foretoken
