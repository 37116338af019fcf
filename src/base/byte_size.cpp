#include "base/byte_size.h"

#include <cmath>

#include "base/text.h"

namespace foretoken {
namespace {

struct ByteUnit {
  std::string_view name;
  double bytes;
};
constexpr ByteUnit units[] = {
    {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}, {"PiB", 0x1p50}, {"kB", 1e3},
    {"KB", 1e3},     {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12},    {"PB", 1e15},    {"B", 1},
};

}  // namespace

std::optional<double> parse_bytes(std::string_view text, bool per_second) {
  if (per_second && text.ends_with("/s")) text.remove_suffix(2);
  double unit_bytes = 1;
  for (const ByteUnit& unit : units) {
    if (!text.ends_with(unit.name)) continue;
    unit_bytes = unit.bytes;
    text.remove_suffix(unit.name.size());
    break;
  }
  const std::optional<double> number = parse_number(text);
  if (!number || *number < 0 || !std::isfinite(*number * unit_bytes)) return std::nullopt;
  return *number * unit_bytes;
}

}  // namespace foretoken
