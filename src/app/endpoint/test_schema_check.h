// For tests: whether a document follows a JSON Schema, read as the standard says and not as the generator reads it.
#pragma once

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/text.h"

namespace foretoken {

class SchemaCheck {
 public:
  explicit SchemaCheck(const Json& root) : root_(&root) {}
  bool follows(const Json& value) const { return follows(*root_, value); }

 private:
  bool follows(const Json& schema, const Json& value) const {
    if (schema.kind() == Json::Kind::boolean) return schema.boolean();
    // A circle of references about one value says nothing.
    if (!open_.emplace(&schema, &value).second) return false;
    const bool all = keeps_all(schema, value);
    open_.erase({&schema, &value});
    return all;
  }
  bool keeps_all(const Json& schema, const Json& value) const {
    return refers(schema, value) && combines(schema, value) && has_type(schema, value) && is_listed(schema, value) &&
           in_bounds(schema, value) && holds_items(schema, value) && holds_members(schema, value);
  }

  bool refers(const Json& schema, const Json& value) const {
    const Json* const reference = schema.find("$ref");
    if (reference == nullptr) return true;
    const Json* at = root_;
    const std::string& text = reference->string();
    for (const std::string_view part : split(text, "/")) {
      if (part == "#") continue;
      at = at->find(part);
      if (at == nullptr) return false;
    }
    return follows(*at, value);
  }

  bool combines(const Json& schema, const Json& value) const {
    const auto fitting = [&](const Json& list) {
      return std::count_if(list.items().begin(), list.items().end(),
                           [&](const Json& one) { return follows(one, value); });
    };
    if (const Json* const any = schema.find("anyOf"); any != nullptr && fitting(*any) == 0) return false;
    if (const Json* const one = schema.find("oneOf"); one != nullptr && fitting(*one) != 1) return false;
    const Json* const all = schema.find("allOf");
    return all == nullptr || fitting(*all) == static_cast<int64_t>(all->items().size());
  }

  static bool is_type(const Json& value, const std::string& type) {
    switch (value.kind()) {
      case Json::Kind::integer:
        return type == "integer" || type == "number";
      case Json::Kind::number:
        return type == "number" || (type == "integer" && value.number() == std::floor(value.number()));
      default:
        return kind_name(value.kind()) == type || (type == "boolean" && value.kind() == Json::Kind::boolean) ||
               (type == "null" && value.kind() == Json::Kind::null) ||
               (type == "string" && value.kind() == Json::Kind::string) ||
               (type == "array" && value.kind() == Json::Kind::array) ||
               (type == "object" && value.kind() == Json::Kind::object);
    }
  }
  static bool has_type(const Json& schema, const Json& value) {
    const Json* const type = schema.find("type");
    if (type == nullptr) return true;
    if (type->kind() == Json::Kind::string) return is_type(value, type->string());
    return std::any_of(type->items().begin(), type->items().end(),
                       [&](const Json& one) { return is_type(value, one.string()); });
  }

  static bool is_listed(const Json& schema, const Json& value) {
    const std::string text = value.dump(0);
    if (const Json* const constant = schema.find("const"); constant != nullptr && constant->dump(0) != text) {
      return false;
    }
    const Json* const list = schema.find("enum");
    return list == nullptr || std::any_of(list->items().begin(), list->items().end(),
                                          [&](const Json& one) { return one.dump(0) == text; });
  }

  static bool at_least(const Json& schema, std::string_view keyword, double value) {
    const Json* const bound = schema.find(keyword);
    return bound == nullptr || bound->kind() == Json::Kind::null || value >= bound->number();
  }
  static bool at_most(const Json& schema, std::string_view keyword, double value) {
    const Json* const bound = schema.find(keyword);
    return bound == nullptr || bound->kind() == Json::Kind::null || value <= bound->number();
  }

  static bool in_bounds(const Json& schema, const Json& value) {
    if (value.kind() == Json::Kind::string) {
      size_t characters = 0;
      for (const char byte : value.string()) characters += (static_cast<unsigned char>(byte) & 0xc0U) != 0x80U ? 1 : 0;
      const auto length = static_cast<double>(characters);
      return at_least(schema, "minLength", length) && at_most(schema, "maxLength", length);
    }
    if (value.kind() != Json::Kind::integer && value.kind() != Json::Kind::number) return true;
    const double number = value.number();
    if (!at_least(schema, "minimum", number) || !at_most(schema, "maximum", number)) return false;
    const Json* const low = schema.find("exclusiveMinimum");
    if (low != nullptr && low->kind() != Json::Kind::boolean && number <= low->number()) return false;
    const Json* const high = schema.find("exclusiveMaximum");
    if (high != nullptr && high->kind() != Json::Kind::boolean && number >= high->number()) return false;
    const Json* const step = schema.find("multipleOf");
    return step == nullptr || std::fmod(number, step->number()) == 0;
  }

  bool holds_items(const Json& schema, const Json& value) const {
    if (value.kind() != Json::Kind::array) return true;
    const auto count = static_cast<double>(value.items().size());
    if (!at_least(schema, "minItems", count) || !at_most(schema, "maxItems", count)) return false;
    const Json* const first = schema.find("prefixItems");
    const Json* const rest = schema.find("items");
    for (size_t i = 0; i < value.items().size(); ++i) {
      const Json* const own = first != nullptr && i < first->items().size() ? &first->items()[i] : rest;
      if (own != nullptr && !follows(*own, value.items()[i])) return false;
    }
    const Json* const unique = schema.find("uniqueItems");
    return unique == nullptr || !unique->boolean() || value.items().size() < 2;
  }

  bool holds_members(const Json& schema, const Json& value) const {
    if (value.kind() != Json::Kind::object) return true;
    const auto count = static_cast<double>(value.members().size());
    if (!at_least(schema, "minProperties", count) || !at_most(schema, "maxProperties", count)) return false;
    if (const Json* const required = schema.find("required")) {
      for (const Json& name : required->items()) {
        if (value.find(name.string()) == nullptr) return false;
      }
    }
    const Json* const properties = schema.find("properties");
    const Json* const other = schema.find("additionalProperties");
    for (const auto& [name, member] : value.members()) {
      const Json* const own = properties != nullptr ? properties->find(name) : nullptr;
      const Json* const rule = own != nullptr ? own : other;
      if (rule != nullptr && !follows(*rule, member)) return false;
    }
    return true;
  }

  const Json* root_;
  mutable std::set<std::pair<const Json*, const Json*>> open_;  // schemas and values that are being compared
};

}  // namespace foretoken
