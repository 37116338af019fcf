#include "base/field_braces.h"

#include <algorithm>

namespace foretoken {

size_t field_in_braces(std::string_view text) {
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  if (!text.starts_with('{')) return 0;
  const size_t end = text.find_first_of("{}", 1);
  if (end == std::string_view::npos || text[end] == '{') return 0;
  const std::string_view name = text.substr(1, end - 1);
  const bool is_field =
      name.size() >= 2 && is_letter(name.front()) &&
      std::all_of(name.begin(), name.end(), [&](char c) { return is_letter(c) || c == '_' || (c >= '0' && c <= '9'); });
  return is_field ? name.size() : 0;
}

std::string with_literal_braces(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (field_in_braces(text.substr(i)) > 0) result += '\\';
    result += text[i];
  }
  return result;
}

std::string without_literal_marks(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '{' && !result.empty() && result.back() == '\\' && field_in_braces(text.substr(i)) > 0) {
      result.pop_back();
    }
    result += text[i];
  }
  return result;
}

}  // namespace foretoken
