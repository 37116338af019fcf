#include "serving/engine/sglang_release.h"

#include <cstdint>
#include <optional>

#include "base/text.h"
#include "compose/engine_release.h"

namespace foretoken {
namespace {

// Of "0.5.10.post1" 10; 0 where there is none.
int64_t patch_of(std::string_view version) {
  const size_t first = version.find('.'), second = version.find('.', first + 1);
  if (first == std::string_view::npos || second == std::string_view::npos) return 0;
  const std::string_view rest = version.substr(second + 1);
  return parse_integer(rest.substr(0, rest.find_first_not_of("0123456789"))).value_or(0);
}

}  // namespace

std::string_view sglang_stack(std::string_view version, bool drafts) {
  // "Use spec v2 by default", 2026-04-29 (github.com/sgl-project/sglang/pull/21062).
  constexpr ReleaseNumber minor{.major = 0, .minor = 5};
  constexpr int64_t first_that_overlaps = 11;
  const std::optional<ReleaseNumber> number = release_number_from(version);
  if (!drafts || !number) return "sglang";
  const bool is_older = *number < minor || (*number == minor && patch_of(version) < first_that_overlaps);
  return is_older ? "sglang-0.5.10" : "sglang";
}

}  // namespace foretoken
