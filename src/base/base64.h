// Bytes as JSON-safe text (RFC 4648), for tables too large to spell out as numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace foretoken {

std::string base64(std::span<const uint8_t> bytes);
std::optional<std::vector<uint8_t>> from_base64(std::string_view text);  // nothing for anything malformed

}  // namespace foretoken
