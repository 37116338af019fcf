#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

namespace foretoken {
namespace {

// Bytes that stand for themselves inside a string: no quote, escape, control character, or part of a longer character.
constexpr std::array<bool, 256> plain_bytes() {
  std::array<bool, 256> plain{};
  for (size_t c = 0x20; c < 0x80; ++c) plain[c] = c != '"' && c != '\\';
  return plain;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Whether a number outside the range of a double is too small for it (and so zero) rather than too large.
bool is_tiny(std::string_view digits) {
  const size_t letter = std::min(digits.find_first_of("eE"), digits.size());
  const size_t point = std::min(digits.find('.'), letter), first = digits.find_first_of("123456789");
  std::string_view power = digits.substr(std::min(letter + 1, digits.size()));
  if (power.starts_with('+')) power.remove_prefix(1);
  int64_t exponent = 0;
  const std::errc problem = std::from_chars(power.data(), power.data() + power.size(), exponent).ec;
  if (problem == std::errc::result_out_of_range) return power.starts_with('-');
  return exponent + static_cast<int64_t>(point) < static_cast<int64_t>(first);
}

void append_utf8(std::string& out, uint32_t code_point) {
  const auto continuation = [&](int shift) { return static_cast<char>(0x80 | (code_point >> shift & 0x3F)); };
  if (code_point < 0x80) {
    out += static_cast<char>(code_point);
  } else if (code_point < 0x800) {
    out += {static_cast<char>(0xC0 | code_point >> 6), continuation(0)};
  } else if (code_point < 0x10000) {
    out += {static_cast<char>(0xE0 | code_point >> 12), continuation(6), continuation(0)};
  } else {
    out += {static_cast<char>(0xF0 | code_point >> 18), continuation(12), continuation(6), continuation(0)};
  }
}

}  // namespace

// Recursive descent (RFC 8259), within limits; every value keeps the line it stands on.
class JsonParser {
 public:
  JsonParser(std::string_view text, const std::string& source, const JsonLimits& limits)
      : text_(text), source_(source), limits_(limits) {}

  Json document() {
    skip_space();
    if (at_ == text_.size()) throw InputError({.source = source_, .value = "empty", .expected = "a JSON document"});
    Json root = value(0);
    skip_space();
    if (at_ < text_.size()) fail(at_, "nothing may follow the document");
    return root;
  }

 private:
  using Members = std::vector<Json::Member>;

  // '\0' at the end, and for a byte that no token begins with.
  char next() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  // Line ends stand nowhere else: inside a string they are refused.
  void skip_space() {
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '\n') {
        ++line_;
      } else if (c != ' ' && c != '\t' && c != '\r') {
        return;
      }
    }
  }

  // The character at `at` is at fault; `at_` is where its token began.
  [[noreturn]] void fail(size_t at, std::string_view reason) const {
    const bool ends_here = text_.find_first_not_of(" \t\r\n", at) == std::string_view::npos;
    const size_t newline = at == 0 ? std::string_view::npos : text_.rfind('\n', at - 1);
    throw InputError({.source = source_,
                      .line = line_of(at),
                      .path = fmt::format("column {}", newline == std::string_view::npos ? at + 1 : at - newline),
                      .value = printable(text_.substr(at_, at + 1 - at_)),
                      .expected = fmt::format("valid JSON: {}{}", reason,
                                              ends_here ? "; the text ends here, so it may be cut off" : "")});
  }

  [[noreturn]] void fail_limit(size_t most, std::string_view what) const {
    throw InputError({.source = source_, .line = line_, .expected = fmt::format("at most {} {}", most, what)});
  }

  int line_of(size_t position) const {
    return 1 + static_cast<int>(std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(position), '\n'));
  }

  Json value(int depth) {
    if (++values_ > limits_.max_values) fail_limit(limits_.max_values, "values");
    const int line = line_;
    Json result;
    switch (next()) {
      case '{':
        result = object(depth);
        break;
      case '[':
        result = array(depth);
        break;
      case '"':
        result = Json(string());
        break;
      case 't':
        literal("true");
        result = Json(true);
        break;
      case 'f':
        literal("false");
        result = Json(false);
        break;
      case 'n':
        literal("null");
        break;
      default:
        if (next() != '-' && !is_digit(next()))
          fail(at_, at_ < text_.size() ? "invalid literal" : "a value is missing");
        result = number();
    }
    result.line_ = line;
    return result;
  }

  void open_container(int depth) {
    if (depth >= limits_.max_depth) fail_limit(static_cast<size_t>(limits_.max_depth), "nested levels");
    ++at_;
    skip_space();
  }

  // Whether another element follows, past the comma; otherwise past the closing bracket.
  bool another(char closing) {
    skip_space();
    if (next() == closing) {
      ++at_;
      return false;
    }
    if (next() != ',') fail(at_, fmt::format("expected `,` or `{}`", closing));
    ++at_;
    skip_space();
    return true;
  }

  Json array(int depth) {
    open_container(depth);
    std::vector<Json> items;
    if (next() == ']') {
      ++at_;
    } else {
      do {
        items.push_back(value(depth + 1));
      } while (another(']'));
    }
    return Json::array(std::move(items));
  }

  Json object(int depth) {
    open_container(depth);
    Json result = Json::object();
    Members& members = std::get<Members>(result.value_);
    if (next() == '}') {
      ++at_;
      return result;
    }
    do {
      if (next() != '"') fail(at_, "expected a key in double quotes");
      std::string key = string();
      skip_space();
      if (next() != ':') fail(at_, "expected `:` after a key");
      ++at_;
      skip_space();
      members.emplace_back(std::move(key), value(depth + 1));
    } while (another('}'));
    refuse_repeated_keys(members);
    return result;
  }

  // Sorted rather than searched at each key: an object of a million keys must not take a million million comparisons.
  void refuse_repeated_keys(const Members& members) const {
    std::vector<const Json::Member*> sorted;
    sorted.reserve(members.size());
    for (const Json::Member& member : members) sorted.push_back(&member);
    std::sort(sorted.begin(), sorted.end(), [](const Json::Member* a, const Json::Member* b) {
      const int order = a->first.compare(b->first);
      return order != 0 ? order < 0 : a < b;
    });
    const auto repeated =
        std::adjacent_find(sorted.begin(), sorted.end(),
                           [](const Json::Member* a, const Json::Member* b) { return a->first == b->first; });
    if (repeated == sorted.end()) return;
    const Json::Member& second = **std::next(repeated);
    throw InputError({.source = source_,
                      .line = second.second.line(),
                      .path = printable(second.first),
                      .value = printable(second.second.dump(0)),
                      .expected = "each key only once"});
  }

  void literal(std::string_view word) {
    for (size_t i = 0; i < word.size(); ++i) {
      if (at_ + i >= text_.size() || text_[at_ + i] != word[i]) fail(at_ + i, "invalid literal");
    }
    at_ += word.size();
  }

  Json number() {
    size_t end = at_;
    const auto is_digit_at = [&](size_t position) { return position < text_.size() && is_digit(text_[position]); };
    const auto pass_digits = [&] {
      if (!is_digit_at(end)) fail(end, "invalid number: expected a digit");
      while (is_digit_at(end)) ++end;
    };
    const auto pass = [&](std::string_view any_of) {
      const bool found = end < text_.size() && any_of.find(text_[end]) != std::string_view::npos;
      end += found ? 1 : 0;
      return found;
    };
    pass("-");
    const bool leading_zero = pass("0");
    if (!leading_zero) pass_digits();
    if (leading_zero && is_digit_at(end)) fail(end, "invalid number: no digit may follow a leading zero");
    bool is_integer = true;
    if (pass(".")) {
      is_integer = false;
      pass_digits();
    }
    if (pass("eE")) {
      is_integer = false;
      pass("+-");
      pass_digits();
    }
    const std::string_view digits = text_.substr(at_, end - at_);
    int64_t integer = 0;
    if (is_integer && std::from_chars(digits.data(), digits.data() + digits.size(), integer).ec == std::errc()) {
      at_ = end;
      return integer;
    }
    const double found = closest_double(digits, end);
    at_ = end;
    return found;
  }

  double closest_double(std::string_view digits, size_t end) const {
    double value = 0;
    if (std::from_chars(digits.data(), digits.data() + digits.size(), value).ec == std::errc()) return value;
    if (!is_tiny(digits)) fail(end - 1, "number overflow");
    return digits.starts_with('-') ? -0.0 : 0.0;
  }

  std::string string() {
    static constexpr std::array<bool, 256> plain = plain_bytes();
    size_t from = at_ + 1, to = from;
    std::string result;
    for (;;) {
      while (to < text_.size() && plain[static_cast<unsigned char>(text_[to])]) ++to;
      if (to >= text_.size()) fail(to, "a string without its closing quote");
      if (text_[to] == '"') break;
      if (text_[to] == '\\') {
        result.append(text_, from, to - from);
        to = from = escape(to, result);
      } else if (static_cast<unsigned char>(text_[to]) < 0x20) {
        fail(to, text_[to] == '\n' ? "a string without its closing quote on the same line"
                                   : "control characters in a string must be escaped");
      } else {
        const size_t length = utf8_length(text_.substr(to));
        if (length == 0) fail(to, "a string that is not well-formed UTF-8");
        to += length;
      }
    }
    at_ = to + 1;
    if (result.empty()) return std::string(text_.substr(from, to - from));
    result.append(text_, from, to - from);
    return result;
  }

  // Appends what the escape at `backslash` stands for; returns the position behind it.
  size_t escape(size_t backslash, std::string& out) const {
    constexpr std::string_view letters = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
    const size_t at = backslash + 1;
    if (at >= text_.size()) fail(at, "a string without its closing quote");
    if (const size_t known = letters.find(text_[at]); known != std::string_view::npos) {
      out += meanings[known];
      return at + 1;
    }
    if (text_[at] != 'u') fail(at, "an escape that JSON does not know");
    uint32_t code = four_hex_digits(at + 1);
    size_t end = at + 5;
    const auto is_low_half = [](uint32_t unit) { return unit >= 0xDC00 && unit <= 0xDFFF; };
    if (is_low_half(code)) fail(end - 1, "the second half of a surrogate pair without the first");
    if (code >= 0xD800 && code <= 0xDBFF) {
      const bool goes_on = text_.substr(end).starts_with("\\u");
      const uint32_t low = goes_on ? four_hex_digits(end + 2) : 0;
      if (!is_low_half(low)) fail(end, "the first half of a surrogate pair without the second");
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
      end += 6;
    }
    append_utf8(out, code);
    return end;
  }

  uint32_t four_hex_digits(size_t at) const {
    uint32_t code = 0;
    const size_t end = std::min(at + 4, text_.size());
    const char* stop = std::from_chars(text_.data() + at, text_.data() + end, code, 16).ptr;
    const auto read = static_cast<size_t>(stop - text_.data());
    if (read != at + 4) fail(read, "\\u must be followed by four hexadecimal digits");
    return code;
  }

  std::string_view text_;
  const std::string& source_;
  const JsonLimits& limits_;
  size_t at_ = 0;
  int line_ = 1;
  size_t values_ = 0;
};

Json parse_json(std::string_view text, const std::string& source, const JsonLimits& limits) {
  if (text.size() > limits.max_bytes) {
    throw InputError({.source = source,
                      .value = fmt::format("{} bytes", text.size()),
                      .expected = fmt::format("at most {} bytes", limits.max_bytes)});
  }
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  return JsonParser(text, source, limits).document();
}

Json read_json_file(const std::filesystem::path& path, const JsonLimits& limits) {
  return parse_json(read_file(path, limits.max_bytes), path.string(), limits);
}

}  // namespace foretoken
