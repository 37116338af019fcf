#include "app/cli/grammar/known_names.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace foretoken {

void check_names(const std::string& flag, std::span<const std::string> given, std::span<const std::string> known) {
  constexpr size_t most_listed = 12;
  for (const std::string& name : given) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const auto listed = known.first(std::min(most_listed, known.size()));
    throw InputError(
        {.source = flag,
         .value = printable(name),
         .expected = fmt::format("one of {}{}", fmt::join(listed, ", "), known.size() > most_listed ? ", ..." : ""),
         .suggestion = nearest_name(name, known).value_or("")});
  }
}

}  // namespace foretoken
