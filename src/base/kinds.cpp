#include "base/kinds.h"

#include <utility>

#include <fmt/format.h>

namespace foretoken {

std::string one_of(std::span<const std::string> names) {
  return fmt::format("one of {}", fmt::join(names, ", "));
}

void fail_unknown_name(std::string_view typed, std::span<const std::string> names, InputProblem where) {
  where.value = printable(typed);
  if (where.expected.empty()) where.expected = one_of(names);
  where.suggestion = nearest_name(typed, names).value_or("");
  throw InputError(std::move(where));
}

}  // namespace foretoken
