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
  uint64_t hash = 0xcbf29ce484222325 ^ bytes.size();
  ByteReader reader(bytes);
  const auto mix = [&](uint64_t word) {
    hash = (hash ^ word) * 0x100000001b3;
    hash ^= hash >> 32;
  };
  while (reader.left() >= sizeof(uint64_t)) mix(reader.get<uint64_t>());
  while (reader.left() > 0) mix(reader.get<uint8_t>());
  return hash;
}

}  // namespace foretoken
