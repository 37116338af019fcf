#include "base/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>

#include <fmt/format.h>

#include "base/exact_integer.h"

namespace foretoken {
namespace {

template <class Number>
std::optional<Number> parse_whole(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Three significant digits without an exponent for 0.1 <= |value| < 1e5.
std::string three_digits(double value) {
  const double size = std::abs(value);
  if (size >= 99.95) return fmt::format("{:.0f}", value);
  if (size >= 9.995) return fmt::format("{:.1f}", value);
  return fmt::format("{:.2f}", value);
}

struct Prefix {
  double factor;
  std::string_view text;
};

std::string with_prefix(double value, std::span<const Prefix> largest_first, std::string_view unit) {
  if (value == 0) return fmt::format("0 {}", unit);
  for (const Prefix& prefix : largest_first) {
    // 0.9995: what would print as 1000 of the smaller prefix prints as 1.00 of this one.
    if (std::abs(value) >= 0.9995 * prefix.factor) {
      return fmt::format("{} {}{}", three_digits(value / prefix.factor), prefix.text, unit);
    }
  }
  const Prefix& smallest = largest_first.back();
  return fmt::format("{} {}{}", three_digits(value / smallest.factor), smallest.text, unit);
}

constexpr Prefix decimal[] = {{1e18, "E"}, {1e15, "P"}, {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}};

}  // namespace

std::optional<double> parse_number(std::string_view text) {
  const std::optional<double> value = parse_whole<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::optional<int64_t> parse_integer(std::string_view text) {
  if (const std::optional<int64_t> value = parse_whole<int64_t>(text)) return value;
  const std::optional<double> value = parse_number(text);
  return value ? exact_integer(*value) : std::nullopt;
}

std::optional<double> parse_scaled_number(std::string_view text) {
  constexpr std::string_view suffixes = "kmgtKMGT";
  constexpr double kibi = 1024;
  constexpr double factors[] = {1e3, 1e6, 1e9, 1e12, kibi, kibi * kibi, kibi * kibi * kibi, kibi * kibi * kibi * kibi};
  const size_t suffix = text.empty() ? std::string_view::npos : suffixes.find(text.back());
  if (suffix == std::string_view::npos) return parse_number(text);
  const std::optional<double> number = parse_number(text.substr(0, text.size() - 1));
  return number ? std::optional(*number * factors[suffix]) : std::nullopt;
}

std::optional<int64_t> exact_integer(double value) {
  constexpr auto largest = static_cast<double>(largest_exact_integer);
  if (!(std::abs(value) <= largest) || std::trunc(value) != value) return std::nullopt;
  return static_cast<int64_t>(value);
}

std::string number_text(double value) {
  return fmt::format("{}", value);
}

std::string duration_text(double seconds) {
  constexpr Prefix prefixes[] = {{1, ""}, {1e-3, "m"}, {1e-6, "u"}, {1e-9, "n"}};
  return seconds == 0 ? "0 s" : with_prefix(seconds, prefixes, "s");
}

std::string bytes_text(double bytes) {
  return with_prefix(bytes, decimal, "B");
}

std::string shell_word(std::string_view word) {
  constexpr std::string_view plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789%+,-./:=@_";
  if (!word.empty() && word.find_first_not_of(plain) == std::string_view::npos) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::optional<std::vector<std::string>> shell_words(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  char quote = '\0';
  bool in_word = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    const bool escapes = c == '\\' && quote != '\'' && i + 1 < line.size();
    if (escapes) {
      word += line[++i];
      in_word = true;
    } else if (quote != '\0' ? c == quote : c == '\'' || c == '"') {
      quote = quote != '\0' ? '\0' : c;
      in_word = true;
    } else if (quote == '\0' && (c == ' ' || c == '\t' || c == '\n')) {
      if (in_word) words.push_back(word);
      word.clear();
      in_word = false;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (quote != '\0') return std::nullopt;
  if (in_word) words.push_back(word);
  return words;
}

std::string count_text(double count) {
  constexpr Prefix prefixes[] = {{1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {1e3, "k"}};
  if (std::abs(count) < 999.5) return fmt::format("{:g}", count);
  return with_prefix(count, prefixes, "");
}

std::string rounded_text(double count) {
  return count < 999.5 ? fmt::format("{:.3g}", count) : count_text(count);
}

std::string rate_text(double per_second, std::string_view unit) {
  return with_prefix(per_second, decimal, unit);
}

std::vector<std::string_view> split(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> pieces;
  while (true) {
    const size_t end = text.find(separator);
    pieces.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return pieces;
    text.remove_prefix(end + separator.size());
  }
}

std::vector<std::string_view> split_words(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> words = split(text, separator);
  std::erase_if(words, [](std::string_view word) { return word.empty(); });
  return words;
}

char lower_case(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = lower_case(c);
  return result;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return a.size() == b.size() && starts_with_ignoring_case(a, b);
}

bool starts_with_ignoring_case(std::string_view text, std::string_view prefix) {
  if (text.size() < prefix.size()) return false;
  for (size_t i = 0; i < prefix.size(); ++i) {
    if (lower_case(text[i]) != lower_case(prefix[i])) return false;
  }
  return true;
}

bool contains_ignoring_case(std::string_view whole, std::string_view part) {
  const auto same = [](char x, char y) { return lower_case(x) == lower_case(y); };
  return part.empty() || std::search(whole.begin(), whole.end(), part.begin(), part.end(), same) != whole.end();
}

size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(i < text.size() ? text[i] : '\0'); };
  const auto continues = [&](size_t i, unsigned least = 0x80, unsigned most = 0xBF) {
    return byte(i) >= least && byte(i) <= most;
  };
  if (text.empty()) return 0;
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xC2) return 0;  // a continuation, or a longer form of an ASCII character
  if (first < 0xE0) return continues(1) ? 2 : 0;
  if (first < 0xF0) {
    // E0: no longer form of a shorter character; ED: no half of a UTF-16 surrogate pair.
    const bool second = continues(1, first == 0xE0 ? 0xA0 : 0x80, first == 0xED ? 0x9F : 0xBF);
    return second && continues(2) ? 3 : 0;
  }
  if (first < 0xF5) {
    // F0: no longer form of a shorter character; F4: nothing above U+10FFFF.
    const bool second = continues(1, first == 0xF0 ? 0x90 : 0x80, first == 0xF4 ? 0x8F : 0xBF);
    return second && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace foretoken
