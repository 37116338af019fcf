// Walks through the text of a MAESTRO file: words, numbers and signs, with the line of each for complaints.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/range.h"

namespace foretoken {

// Looks into `text`, which must outlive it. As in MAESTRO, `,` `;` and `:` between things may be left out and `//`
// starts a comment that ends with the line.
class MaestroText {
 public:
  MaestroText(std::string_view text, std::string source);

  bool at_end();
  bool next_is(char sign);
  bool take(char sign);          // whether it stood there
  void expect(char sign);        // InputError when something else stands there
  std::string_view peek_word();  // letters, digits, _ and '; empty before a sign or the end
  std::string_view take_word(const char* expected);
  std::string_view take_title();  // the rest of the line up to { (names may hold any sign)
  int64_t take_integer(Range<int64_t> allowed);
  int line() const { return line_; }
  const std::string& source() const { return source_; }

  // About what stands next.
  [[noreturn]] void fail(std::string expected, std::string suggestion = "");
  [[noreturn]] void fail_at(int line, std::string_view value, std::string expected, std::string suggestion = "") const;
  [[noreturn]] void fail_unknown(std::string_view word, std::string expected, std::span<const std::string> known) const;

 private:
  void skip_blanks();

  std::string_view rest_;
  std::string source_;
  int line_ = 1;
};

}  // namespace foretoken
