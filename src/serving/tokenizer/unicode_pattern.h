// A regular expression over Unicode text, as tokenizer files hold them (\p{L}, look-ahead, (?i:...)): std::regex knows
// none of these.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace foretoken {

class UnicodePattern {
 public:
  struct Match {
    size_t begin = 0, end = 0;
  };

  // InputError that names the place in the file where the expression does not compile.
  UnicodePattern(const std::string& expression, const JsonView& place);

  // The first match at `from` or later. One thread at a time. InputError where it would take too long to find.
  std::optional<Match> find(std::string_view text, size_t from) const;

 private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace foretoken
