#include "base/bytes.h"

namespace foretoken {

void ByteWriter::put(std::string_view text) {
  put(static_cast<uint64_t>(text.size()));
  for (const char c : text) bytes_.push_back(static_cast<uint8_t>(c));
}

std::string ByteReader::text() {
  const std::span<const uint8_t> bytes = take(get<uint64_t>());
  return {bytes.begin(), bytes.end()};
}

uint64_t digest(std::span<const uint8_t> bytes) {
  constexpr uint64_t multiplier = 0x9E3779B97F4A7C15;  // odd, with bits set throughout: 2^64 over the golden ratio
  uint64_t hash = multiplier ^ bytes.size();
  ByteReader reader(bytes);
  const auto mix = [&](uint64_t word) {
    hash = (hash ^ word) * multiplier;
    hash ^= hash >> 32;
  };
  while (reader.left() >= sizeof(uint64_t)) mix(reader.get<uint64_t>());
  while (reader.left() > 0) mix(reader.get<uint8_t>());
  return hash;
}

uint64_t digest(std::string_view text) {
  return digest({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

}  // namespace foretoken
