#include "accelerator/formats/timeloop_attributes.h"

#include <algorithm>

#include "base/expression.h"
#include "base/text.h"

namespace foretoken {
namespace {

constexpr int deepest_reference = 16;  // a chain of attributes that refer to each other; more is a circle

std::string attribute_name(std::string_view written) {
  std::string name(written);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace

void TimeloopAttributes::add(const JsonView& attributes) {
  for (const auto& [name, value] : attributes.members()) {
    if (!value.is(Json::Kind::null)) values_.insert_or_assign(attribute_name(name), value);
  }
}

void TimeloopAttributes::add_variables(const JsonView& variables) {
  for (const auto& [name, value] : variables.members()) variables_.insert_or_assign(attribute_name(name), value);
}

const JsonView* TimeloopAttributes::find(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

const JsonView* TimeloopAttributes::find_or_variable(std::string_view name) const {
  if (const JsonView* found = find(name)) return found;
  const auto variable = variables_.find(name);
  return variable == variables_.end() ? nullptr : &variable->second;
}

const JsonView* TimeloopAttributes::find_any(std::initializer_list<std::string_view> names) const {
  for (const std::string_view name : names) {
    if (const JsonView* found = find(name)) return found;
  }
  return nullptr;
}

double TimeloopAttributes::value_of(const JsonView& view, int depth) const {
  if (view.is_number()) return view.number();
  if (!view.is(Json::Kind::string)) view.fail("a number or an expression");
  if (depth > deepest_reference) view.fail("an expression that does not refer to itself");
  // A number in quotes with an exponent is no expression: there 1e-9 is 1e minus 9.
  const std::string text = view.string();
  if (const auto number = parse_number(text)) return *number;
  const Expression expression = Expression::parse(text, view.source(), view.path());
  return expression.value([&](std::string_view name) -> std::optional<double> {
    const JsonView* other = find_or_variable(name);
    if (other == nullptr) return std::nullopt;
    return value_of(*other, depth + 1);
  });
}

double TimeloopAttributes::value_of(const JsonView& view) const {
  return value_of(view, 0);
}

std::optional<double> TimeloopAttributes::number(std::initializer_list<std::string_view> names,
                                                 Range<double> allowed) const {
  const JsonView* view = find_any(names);
  if (view == nullptr) return std::nullopt;
  const double value = value_of(*view);
  if (!allowed.holds(value)) view->fail(range_text(allowed));
  return value;
}

std::optional<int64_t> TimeloopAttributes::integer(std::initializer_list<std::string_view> names,
                                                   Range<int64_t> allowed) const {
  const JsonView* view = find_any(names);
  if (view == nullptr) return std::nullopt;
  const auto value = exact_integer(value_of(*view));
  if (!value || !allowed.holds(*value)) view->fail(range_text(allowed));
  return *value;
}

std::vector<std::string> TimeloopAttributes::names() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : values_) names.push_back(name);
  return names;
}

}  // namespace foretoken
