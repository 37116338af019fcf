#include "app/cli/grammar/whole_numbers.h"

#include "base/error.h"
#include "base/text.h"

namespace foretoken {

std::vector<int64_t> whole_numbers(const std::string& flag, const std::string& text, std::string_view separator,
                                   Range<int64_t> allowed, const std::string& expected) {
  std::vector<int64_t> numbers;
  for (const std::string_view part : split(text, separator)) {
    const std::optional<int64_t> number = parse_integer(part);
    if (!number || !allowed.holds(*number)) {
      throw InputError({.source = flag, .value = printable(text), .expected = expected});
    }
    numbers.push_back(*number);
  }
  return numbers;
}

}  // namespace foretoken
