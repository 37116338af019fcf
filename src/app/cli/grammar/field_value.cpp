#include "app/cli/grammar/field_value.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"

namespace foretoken {
namespace {

bool takes_several(FlagKind kind) {
  return kind == FlagKind::list || kind == FlagKind::texts;
}

std::string expected_type(const FlagDeclaration& flag) {
  switch (flag.kind) {
    case FlagKind::flag:
      return "true or false";
    case FlagKind::integer:
      return "a whole number, not true or false, a list or an object";
    case FlagKind::number:
      return "a number, not true or false, a list or an object";
    case FlagKind::choice:
      return fmt::format("one of {}", fmt::join(flag.choices, ", "));
    case FlagKind::text:
    case FlagKind::list:
    case FlagKind::texts:
      break;
  }
  return flag.takes_settings ? "a text or an object of settings" : "a text, a number or a list, not true or false";
}

std::string scalar_text(const FlagDeclaration& flag, const JsonView& value) {
  switch (value.value().kind()) {
    case Json::Kind::integer:
      return fmt::format("{}", value.value().integer());
    case Json::Kind::number:
      return number_text(value.value().number());
    case Json::Kind::string:
      if (value.value().string().find('\0') != std::string::npos) value.fail("a text without a zero byte");
      return value.value().string();
    default:
      value.fail(expected_type(flag));
  }
}

// {"count": 2, "enforce_eager": true}: "count=2,enforce-eager".
std::string settings_text(const FlagDeclaration& flag, const JsonView& settings) {
  std::string text;
  for (const auto& [name, value] : settings.members()) {
    if (value.is(Json::Kind::null)) continue;
    std::string key = name;
    std::replace(key.begin(), key.end(), '_', '-');
    if (key.empty() || key.find_first_of(",=") != std::string::npos) value.fail("a setting with a name");
    if (value.is(Json::Kind::boolean)) {
      key = value.boolean() ? key : "no-" + key;
    } else {
      const std::string held = scalar_text(flag, value);
      if (held.empty() || held.find(',') != std::string::npos) value.fail("one value, without commas");
      key += "=" + held;
    }
    text += (text.empty() ? "" : ",") + key;
  }
  return text;
}

std::string item_text(const FlagDeclaration& flag, const JsonView& value) {
  if (!value.is(Json::Kind::object)) return scalar_text(flag, value);
  return flag.takes_settings ? settings_text(flag, value) : value.value().dump(0);
}

}  // namespace

std::vector<std::string> field_texts(const FlagDeclaration& flag, const JsonView& value) {
  const bool is_scalar_kind =
      flag.kind == FlagKind::integer || flag.kind == FlagKind::number || flag.kind == FlagKind::choice;
  if (flag.kind == FlagKind::flag) {
    if (!value.is(Json::Kind::boolean)) value.fail(expected_type(flag));
    return {value.boolean() ? "true" : "false"};
  }
  if (is_scalar_kind) return {scalar_text(flag, value)};
  std::vector<std::string> texts;
  if (value.is(Json::Kind::array)) {
    for (const JsonView& item : value.items()) texts.push_back(item_text(flag, item));
    const bool joins = !takes_several(flag.kind) && !texts.empty();
    if (joins) texts = {fmt::format("{}", fmt::join(texts, ","))};
    return texts;
  }
  const bool is_named_values = value.is(Json::Kind::object) && takes_several(flag.kind) && !flag.takes_settings;
  if (!is_named_values) return {item_text(flag, value)};
  for (const auto& [name, item] : value.members()) texts.push_back(name + "=" + scalar_text(flag, item));
  return texts;
}

std::vector<std::string> flag_words(const FlagDeclaration& flag, const std::vector<std::string>& texts) {
  const std::string& name = flag.names.front();
  if (flag.kind == FlagKind::flag) return {texts.front() == "true" ? name : "--no-" + name.substr(2)};
  std::vector<std::string> words;
  for (const std::string& text : texts) {
    if (text.starts_with("-") && !flag.is_positional()) {
      words.push_back(name + "=" + text);  // it would be read as a flag
      continue;
    }
    if (!flag.is_positional()) words.push_back(name);
    words.push_back(text);
  }
  return words;
}

}  // namespace foretoken
