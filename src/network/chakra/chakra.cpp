#include "network/chakra/chakra.h"

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/text.h"

namespace foretoken {

ChakraAttribute chakra_integer(std::string name, int64_t value) {
  return {.name = std::move(name), .format = ChakraFormat::int64, .value = value};
}

ChakraAttribute chakra_unsigned(std::string name, uint64_t value) {
  return {.name = std::move(name), .format = ChakraFormat::uint64, .value = value};
}

ChakraAttribute chakra_boolean(std::string name, bool value) {
  return {.name = std::move(name), .format = ChakraFormat::boolean, .value = value};
}

ChakraAttribute chakra_number(std::string name, double value) {
  return {.name = std::move(name), .format = ChakraFormat::real64, .value = value};
}

ChakraAttribute chakra_text(std::string name, std::string value) {
  return {.name = std::move(name), .format = ChakraFormat::text, .value = std::move(value)};
}

std::optional<int64_t> integer_value(const ChakraAttribute& attribute) {
  if (const auto* value = std::get_if<int64_t>(&attribute.value)) return *value;
  if (const auto* value = std::get_if<bool>(&attribute.value)) return *value ? 1 : 0;
  if (const auto* value = std::get_if<uint64_t>(&attribute.value)) {
    if (*value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
    return static_cast<int64_t>(*value);
  }
  if (const auto* value = std::get_if<std::string>(&attribute.value)) return parse_integer(*value);
  const std::optional<double> number = number_value(attribute);
  return number ? exact_integer(*number) : std::nullopt;
}

std::optional<double> number_value(const ChakraAttribute& attribute) {
  std::optional<double> number;
  if (const auto* real = std::get_if<double>(&attribute.value)) number = *real;
  if (const auto* real = std::get_if<float>(&attribute.value)) number = *real;
  if (const auto* whole = std::get_if<int64_t>(&attribute.value)) number = static_cast<double>(*whole);
  if (const auto* whole = std::get_if<uint64_t>(&attribute.value)) number = static_cast<double>(*whole);
  if (const auto* text = std::get_if<std::string>(&attribute.value)) number = parse_number(*text);
  if (number && !std::isfinite(*number)) return std::nullopt;
  return number;
}

std::optional<std::string> text_value(const ChakraAttribute& attribute) {
  if (const auto* text = std::get_if<std::string>(&attribute.value)) return *text;
  const std::optional<int64_t> number = integer_value(attribute);
  return number ? std::optional(fmt::format("{}", *number)) : std::nullopt;
}

const ChakraAttribute* ChakraNode::find(std::string_view wanted) const {
  for (const ChakraAttribute& attribute : attributes) {
    if (attribute.name == wanted) return &attribute;
  }
  return nullptr;
}

std::filesystem::path chakra_path(const std::string& prefix, int64_t rank) {
  return fmt::format("{}.{}.et", prefix, rank);
}

}  // namespace foretoken
