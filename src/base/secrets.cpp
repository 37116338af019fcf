#include "base/secrets.h"

#include <algorithm>
#include <cctype>

namespace foretoken {
namespace {

constexpr std::string_view hidden = "***";
constexpr std::string_view scheme_end = "://";

// `from` to the end of the address that begins there.
size_t address_end(std::string_view text, size_t from) {
  const size_t end = text.find_first_of(" \t\r\n'\"`", from);
  return end == std::string_view::npos ? text.size() : end;
}

bool is_one_address(std::string_view text) {
  const size_t sign = text.find(scheme_end);
  if (sign == std::string_view::npos) return false;
  for (const char c : text.substr(0, sign)) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) return false;
  }
  return true;
}

// What follows "://".
std::string hide_in_address(std::string_view rest) {
  std::string shown;
  // Up to the last @, since people forget to encode one in their password.
  const size_t at = rest.rfind('@');
  const size_t colon = rest.find(':');
  if (at != std::string_view::npos && colon < at) {
    shown.append(rest.substr(0, colon + 1)).append(hidden);
    rest.remove_prefix(at);
  }
  constexpr std::string_view field = "password=";
  for (size_t place = rest.find(field); place != std::string_view::npos; place = rest.find(field)) {
    shown.append(rest.substr(0, place + field.size())).append(hidden);
    rest.remove_prefix(std::min(rest.size(), rest.find('&', place)));
  }
  return shown.append(rest);
}

}  // namespace

std::string without_passwords(std::string_view text) {
  const bool is_whole = is_one_address(text);
  std::string shown;
  for (size_t sign = text.find(scheme_end); sign != std::string_view::npos; sign = text.find(scheme_end)) {
    const size_t begin = sign + scheme_end.size();
    const size_t end = is_whole ? text.size() : address_end(text, begin);
    shown.append(text.substr(0, begin)).append(hide_in_address(text.substr(begin, end - begin)));
    text.remove_prefix(end);
  }
  return shown.append(text);
}

}  // namespace foretoken
