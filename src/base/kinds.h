// Things that come in kinds: lists by hand of structs whose `name` is what users type.
#pragma once

#include <algorithm>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace foretoken {

// In the order of the list.
template <class Kinds>
std::vector<std::string> kind_names(const Kinds& kinds) {
  std::vector<std::string> names;
  names.reserve(std::size(kinds));
  for (const auto& kind : kinds) names.emplace_back(kind.name);
  return names;
}

// The kind of that name; null where there is none.
template <class Kinds>
auto find_kind(const Kinds& kinds, std::string_view name) {
  const auto found =
      std::find_if(std::begin(kinds), std::end(kinds), [&](const auto& kind) { return kind.name == name; });
  return found == std::end(kinds) ? nullptr : &*found;
}

// "one of a, b, c".
std::string one_of(std::span<const std::string> names);

// InputError for a name that nobody has: `where` with the name, what was expected (if nothing is said: all names) and
// the nearest name filled in.
[[noreturn]] void fail_unknown_name(std::string_view typed, std::span<const std::string> names, InputProblem where);

// The kind of that name, or that error. The list must outlive what is returned.
template <class Kinds>
const auto& kind_named(const Kinds& kinds, std::string_view name, InputProblem where) {
  const auto* const kind = find_kind(kinds, name);
  if (kind == nullptr) fail_unknown_name(name, kind_names(kinds), std::move(where));
  return *kind;
}

// The same for a name in a file; `expected` empty: all names.
template <class Kinds>
const auto& kind_in(const JsonView& view, const Kinds& kinds, std::string expected = {}) {
  const std::string name = view.string();
  const auto* const kind = find_kind(kinds, name);
  if (kind == nullptr) {
    const std::vector<std::string> names = kind_names(kinds);
    view.fail(expected.empty() ? one_of(names) : std::move(expected), nearest_name(name, names).value_or(""));
  }
  return *kind;
}

}  // namespace foretoken
