// Attributes of a Timeloop node: its own and those it inherits, where a value may be arithmetic on others.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace foretoken {

// Names are compared with '-' as '_'. The document must outlive the views kept here.
class TimeloopAttributes {
 public:
  // These replace what was inherited under the same name.
  void add(const JsonView& attributes);
  // Names that expressions may use, behind all attributes.
  void add_variables(const JsonView& variables);

  const JsonView* find(std::string_view name) const;
  const JsonView* find_or_variable(std::string_view name) const;
  // The first of the names that is given: Timeloop knows several spellings of most attributes.
  const JsonView* find_any(std::initializer_list<std::string_view> names) const;
  std::optional<double> number(std::initializer_list<std::string_view> names, Range<double> allowed) const;
  std::optional<int64_t> integer(std::initializer_list<std::string_view> names, Range<int64_t> allowed) const;
  std::vector<std::string> names() const;  // sorted

  // The value of a number or an expression over the attributes, at `view`.
  double value_of(const JsonView& view) const;

 private:
  double value_of(const JsonView& view, int depth) const;

  std::map<std::string, JsonView, std::less<>> values_, variables_;
};

}  // namespace foretoken
