#include "accelerator/dataflow/maestro_text.h"

#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace foretoken {
namespace {

constexpr size_t longest_maestro_file = size_t{8} << 20;
constexpr size_t longest_maestro_name = 200;

bool is_word_sign(char sign) {
  return (sign >= 'a' && sign <= 'z') || (sign >= 'A' && sign <= 'Z') || (sign >= '0' && sign <= '9') || sign == '_' ||
         sign == '\'';
}

}  // namespace

MaestroText::MaestroText(std::string_view text, std::string source) : rest_(text), source_(std::move(source)) {
  if (text.size() <= longest_maestro_file) return;
  throw InputError({.source = source_,
                    .value = fmt::format("{} bytes", text.size()),
                    .expected = fmt::format("at most {} bytes", longest_maestro_file)});
}

void MaestroText::skip_blanks() {
  while (!rest_.empty()) {
    const char sign = rest_.front();
    if (rest_.starts_with("//")) {
      rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size()));
    } else if (sign == ' ' || sign == '\t' || sign == '\r' || sign == '\n' || sign == ',' || sign == ';' ||
               sign == ':') {
      if (sign == '\n') ++line_;
      rest_.remove_prefix(1);
    } else {
      return;
    }
  }
}

bool MaestroText::at_end() {
  skip_blanks();
  return rest_.empty();
}

bool MaestroText::next_is(char sign) {
  skip_blanks();
  return rest_.starts_with(sign);
}

bool MaestroText::take(char sign) {
  if (!next_is(sign)) return false;
  rest_.remove_prefix(1);
  return true;
}

void MaestroText::expect(char sign) {
  if (!take(sign)) fail(fmt::format("'{}'", sign));
}

std::string_view MaestroText::peek_word() {
  skip_blanks();
  size_t length = 0;
  while (length < rest_.size() && is_word_sign(rest_[length])) ++length;
  return rest_.substr(0, length);
}

std::string_view MaestroText::take_word(const char* expected) {
  const std::string_view word = peek_word();
  if (word.empty()) fail(expected);
  rest_.remove_prefix(word.size());
  return word;
}

std::string_view MaestroText::take_title() {
  skip_blanks();
  std::string_view title = rest_.substr(0, std::min(rest_.find_first_of("{\n"), rest_.size()));
  rest_.remove_prefix(title.size());
  while (!title.empty() && (title.back() == ' ' || title.back() == '\t' || title.back() == '\r'))
    title.remove_suffix(1);
  if (title.size() > longest_maestro_name) {
    fail_at(line_, title, fmt::format("a name of at most {} letters", longest_maestro_name));
  }
  return title;
}

int64_t MaestroText::take_integer(Range<int64_t> allowed) {
  const std::string_view word = peek_word();
  const std::optional<int64_t> value = parse_integer(word);
  if (!value || !allowed.holds(*value)) fail(range_text(allowed));
  rest_.remove_prefix(word.size());
  return *value;
}

void MaestroText::fail(std::string expected, std::string suggestion) {
  const std::string_view word = peek_word();
  const std::string_view next = word.empty() ? rest_.substr(0, 1) : word;
  fail_at(line_, next.empty() ? "the end of the file" : next, std::move(expected), std::move(suggestion));
}

void MaestroText::fail_at(int line, std::string_view value, std::string expected, std::string suggestion) const {
  throw InputError({.source = source_,
                    .line = line,
                    .value = printable(value),
                    .expected = std::move(expected),
                    .suggestion = std::move(suggestion)});
}

void MaestroText::fail_unknown(std::string_view word, std::string expected, std::span<const std::string> known) const {
  fail_at(line_, word, std::move(expected), nearest_name(word, known).value_or(""));
}

}  // namespace foretoken
