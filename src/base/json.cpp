#include "base/json.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace foretoken {
namespace {

void append_escaped(std::string& out, std::string_view text) {
  out += '"';
  for (size_t i = 0, length = 1; i < text.size(); i += std::max<size_t>(length, 1)) {
    length = utf8_length(text.substr(i));
    if (length != 1) {
      out += length == 0 ? "\xEF\xBF\xBD" : text.substr(i, length);
      continue;
    }
    const char c = text[i];
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

void append_number(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
  } else if (value == 0 && std::signbit(value)) {
    out += "-0.0";  // "-0" would read back as the integer 0
  } else {
    out += number_text(value);
  }
}

void append(std::string& out, const Json& value, int indent, int depth) {
  const auto new_line = [&](int levels) {
    if (indent == 0) return;
    out += '\n';
    out.append(static_cast<size_t>(indent * levels), ' ');
  };
  switch (value.kind()) {
    case Json::Kind::null:
      out += "null";
      return;
    case Json::Kind::boolean:
      out += value.boolean() ? "true" : "false";
      return;
    case Json::Kind::integer:
      out += fmt::format("{}", value.integer());
      return;
    case Json::Kind::number:
      append_number(out, value.number());
      return;
    case Json::Kind::string:
      append_escaped(out, value.string());
      return;
    case Json::Kind::array: {
      out += '[';
      bool first = true;
      for (const Json& item : value.items()) {
        if (!first) out += ',';
        first = false;
        new_line(depth + 1);
        append(out, item, indent, depth + 1);
      }
      if (!first) new_line(depth);
      out += ']';
      return;
    }
    case Json::Kind::object: {
      out += '{';
      bool first = true;
      for (const auto& [key, member] : value.members()) {
        if (!first) out += ',';
        first = false;
        new_line(depth + 1);
        append_escaped(out, key);
        out += indent == 0 ? ":" : ": ";
        append(out, member, indent, depth + 1);
      }
      if (!first) new_line(depth);
      out += '}';
      return;
    }
  }
}

template <class T>
const T& held_or_empty(const auto& value) {
  static const T empty{};
  const T* held = std::get_if<T>(&value);
  return held == nullptr ? empty : *held;
}

}  // namespace

Json::Json() = default;
Json::~Json() = default;
Json::Json(const Json&) = default;
Json::Json(Json&&) noexcept = default;
Json& Json::operator=(const Json&) = default;
Json& Json::operator=(Json&&) noexcept = default;

Json::Json(size_t value) : value_(static_cast<int64_t>(value)) {
  ensure(value <= static_cast<size_t>(std::numeric_limits<int64_t>::max()), "a count fits a JSON integer");
}

Json Json::array() {
  return array({});
}

Json Json::array(std::vector<Json> items) {
  Json result;
  result.value_ = std::move(items);
  return result;
}

Json Json::object() {
  return object({});
}

Json Json::object(std::initializer_list<Member> members) {
  Json result;
  result.value_ = std::vector<Member>(members);
  return result;
}

bool Json::boolean() const {
  return held_or_empty<bool>(value_);
}
int64_t Json::integer() const {
  return held_or_empty<int64_t>(value_);
}
double Json::number() const {
  return kind() == Kind::integer ? static_cast<double>(integer()) : held_or_empty<double>(value_);
}
const std::string& Json::string() const {
  return held_or_empty<std::string>(value_);
}
const std::vector<Json>& Json::items() const {
  return held_or_empty<std::vector<Json>>(value_);
}
const std::vector<Json::Member>& Json::members() const {
  return held_or_empty<std::vector<Member>>(value_);
}

Json& Json::set(std::string key, Json value) {
  ensure(kind() == Kind::object, "only an object has members");
  auto& members = std::get<std::vector<Member>>(value_);
  for (auto& [name, member] : members) {
    if (name == key) {
      member = std::move(value);
      return *this;
    }
  }
  members.emplace_back(std::move(key), std::move(value));
  return *this;
}

Json& Json::push(Json value) {
  ensure(kind() == Kind::array, "only an array has items");
  std::get<std::vector<Json>>(value_).push_back(std::move(value));
  return *this;
}

void Json::change_texts(const std::function<void(std::string& text)>& change) {
  if (auto* text = std::get_if<std::string>(&value_)) change(*text);
  if (auto* items = std::get_if<std::vector<Json>>(&value_)) {
    for (Json& item : *items) item.change_texts(change);
  }
  if (auto* members = std::get_if<std::vector<Member>>(&value_)) {
    for (auto& [key, value] : *members) {
      change(key);
      value.change_texts(change);
    }
  }
}

const Json* Json::find(std::string_view key) const {
  for (const auto& [name, member] : members()) {
    if (name == key) return &member;
  }
  return nullptr;
}

std::string Json::dump(int indent) const {
  std::string out;
  append(out, *this, indent, 0);
  return out;
}

std::string_view kind_name(Json::Kind kind) {
  constexpr std::string_view names[] = {"null",     "true or false", "a whole number", "a number",
                                        "a string", "a list",        "an object"};
  return names[static_cast<size_t>(kind)];
}

}  // namespace foretoken
