#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace foretoken {
namespace {

std::string child_path(const std::string& parent, std::string_view key) {
  std::string path;
  path.reserve(parent.size() + 1 + key.size());
  path += parent;
  if (!parent.empty()) path += '.';
  return path += key;
}

}  // namespace

JsonView::JsonView(const Json& value, std::string source, std::string path)
    : value_(&value), source_(std::make_shared<const std::string>(std::move(source))), path_(std::move(path)) {}

bool JsonView::has(std::string_view key) const {
  return find(key).has_value();
}

JsonView JsonView::at(std::string_view key) const {
  if (std::optional<JsonView> found = find(key)) return *found;
  std::vector<std::string> keys;
  for (const auto& [name, member] : value_->members()) {
    if (member.kind() != Json::Kind::null) keys.push_back(name);
  }
  throw InputError({.source = *source_,
                    .line = value_->line(),
                    .path = path_,
                    .expected = fmt::format("a key `{}`", key),
                    .suggestion = nearest_name(key, keys).value_or("")});
}

std::optional<JsonView> JsonView::find(std::string_view key) const {
  if (!is(Json::Kind::object)) fail(std::string(kind_name(Json::Kind::object)));
  const Json* member = value_->find(key);
  if (member == nullptr || member->kind() == Json::Kind::null) return std::nullopt;
  return JsonView(*member, source_, child_path(path_, key));
}

std::vector<JsonView> JsonView::items() const {
  if (!is(Json::Kind::array)) fail(std::string(kind_name(Json::Kind::array)));
  std::vector<JsonView> views;
  views.reserve(value_->items().size());
  for (const Json& item : value_->items())
    views.push_back(JsonView(item, source_, path_ + '[' + std::to_string(views.size()) + ']'));

  return views;
}

std::vector<std::pair<std::string, JsonView>> JsonView::members() const {
  if (!is(Json::Kind::object)) fail(std::string(kind_name(Json::Kind::object)));
  std::vector<std::pair<std::string, JsonView>> views;
  views.reserve(value_->members().size());
  for (const auto& [name, member] : value_->members()) {
    views.emplace_back(name, JsonView(member, source_, child_path(path_, printable(name))));
  }
  return views;
}

std::string JsonView::string() const {
  if (!is(Json::Kind::string)) fail(std::string(kind_name(Json::Kind::string)));
  return value_->string();
}

bool JsonView::boolean() const {
  if (!is(Json::Kind::boolean)) fail(std::string(kind_name(Json::Kind::boolean)));
  return value_->boolean();
}

double JsonView::number(Range<double> allowed) const {
  const double value = is_number() ? value_->number() : std::nan("");
  if (!allowed.holds(value)) fail(range_text(allowed));
  return value;
}

int64_t JsonView::integer(Range<int64_t> allowed) const {
  const std::optional<int64_t> value =
      is(Json::Kind::integer) ? value_->integer() : exact_integer(is_number() ? value_->number() : std::nan(""));
  if (!value || !allowed.holds(*value)) fail(range_text(allowed, value_->number()));
  return *value;
}

void JsonView::allow_only(std::initializer_list<std::string_view> keys) const {
  if (!is(Json::Kind::object)) fail(std::string(kind_name(Json::Kind::object)));
  for (const auto& [name, member] : value_->members()) {
    if (std::find(keys.begin(), keys.end(), name) != keys.end()) continue;
    const std::vector<std::string> known(keys.begin(), keys.end());
    throw InputError({.source = *source_,
                      .line = member.line(),
                      .path = child_path(path_, printable(name)),
                      .expected = fmt::format("one of the keys {}", fmt::join(keys, ", ")),
                      .suggestion = nearest_name(name, known).value_or("")});
  }
}

void JsonView::fail(std::string expected, std::string suggestion) const {
  throw InputError({.source = *source_,
                    .line = value_->line(),
                    .path = path_.empty() ? "the document" : path_,
                    .value = printable(value_->dump(0)),
                    .expected = std::move(expected),
                    .suggestion = std::move(suggestion)});
}

}  // namespace foretoken
