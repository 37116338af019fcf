#include "base/json.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace foretoken {

// Receives parse events and builds the tree with line numbers, within limits.
class JsonBuilder {
 public:
  JsonBuilder(std::string_view text, const std::string& source, const JsonLimits& limits, const size_t& consumed)
      : text_(text), source_(source), limits_(limits), consumed_(consumed) {}

  Json take_root() { return std::move(root_); }

  bool null() { return add(Json(), 0); }
  bool boolean(bool value) { return add(Json(value), 0); }
  // A number ends only when the character after it has been read.
  bool number_integer(int64_t value) { return add(Json(value), 1); }
  bool number_unsigned(uint64_t value) {
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return add(Json(static_cast<double>(value)), 1);
    return add(Json(static_cast<int64_t>(value)), 1);
  }
  bool number_float(double value, const std::string& /*text*/) { return add(Json(value), 1); }
  bool string(std::string& value) { return add(Json(std::move(value)), 0); }
  bool binary(nlohmann::json::binary_t& /*value*/) { return false; }
  bool start_object(size_t /*size*/) { return open(Json::object()); }
  bool start_array(size_t /*size*/) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    if (open_.back()->find(name) != nullptr) {
      throw InputError({.source = source_, .line = line_at(0), .path = printable(name), .expected = "each key only once"});
    }
    open_.back()->members_.emplace_back(std::move(name), Json());
    return true;
  }

  bool parse_error(size_t position, const std::string& last_token, const nlohmann::json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ...": the part after the position is the reason.
    const std::string_view whole = error.what();
    const size_t reason = whole.rfind(": ");
    const size_t at = std::min(position, text_.size());
    const auto newline = text_.substr(0, at).rfind('\n');
    const size_t column = newline == std::string_view::npos ? at : at - newline - 1;
    throw InputError({.source = source_,
                      .line = line_of(at),
                      .path = fmt::format("column {}", column),
                      .value = printable(last_token),
                      .expected = fmt::format("valid JSON ({})", printable(whole.substr(reason == whole.npos ? 0 : reason + 2), 200))});
  }

 private:
  int line_of(size_t position) const {
    return 1 + static_cast<int>(std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(position), '\n'));
  }

  // Events come in text order, so lines are counted once.
  int line_at(size_t lookahead) {
    const size_t position = consumed_ > lookahead ? consumed_ - lookahead : 0;
    for (; counted_ < position && counted_ < text_.size(); ++counted_) line_ += text_[counted_] == '\n' ? 1 : 0;
    return line_;
  }

  Json* place(Json value) {
    if (++values_ > limits_.max_values) {
      throw InputError({.source = source_, .line = line_, .expected = fmt::format("at most {} values", limits_.max_values)});
    }
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *open_.back();
    if (parent.kind_ == Json::Kind::array) return &parent.items_.emplace_back(std::move(value));
    parent.members_.back().second = std::move(value);
    return &parent.members_.back().second;
  }

  bool add(Json value, size_t lookahead) {
    value.line_ = line_at(lookahead);
    place(std::move(value));
    return true;
  }

  bool open(Json value) {
    value.line_ = line_at(0);
    if (static_cast<int>(open_.size()) >= limits_.max_depth) {
      throw InputError({.source = source_, .line = line_, .expected = fmt::format("at most {} nested levels", limits_.max_depth)});
    }
    open_.push_back(place(std::move(value)));
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  std::string_view text_;
  const std::string& source_;
  const JsonLimits& limits_;
  const size_t& consumed_;
  size_t counted_ = 0;
  int line_ = 1;
  size_t values_ = 0;
  Json root_;
  // Only the innermost container grows, so pointers to its ancestors stay valid.
  std::vector<Json*> open_;
};

namespace {

// Walks the text and says how far the parser has come: the library reports positions for errors only.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, size_t* consumed) : at_(at), consumed_(consumed) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    ++at_;
    ++*consumed_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const CountingIterator& a, const CountingIterator& b) { return a.at_ == b.at_; }
  friend bool operator!=(const CountingIterator& a, const CountingIterator& b) { return a.at_ != b.at_; }

 private:
  const char* at_;
  size_t* consumed_;
};

void append_escaped(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
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

void append(std::string& out, const Json& value, int indent, int depth) {
  const auto new_line = [&](int levels) {
    if (indent == 0) return;
    out += '\n';
    out.append(static_cast<size_t>(indent * levels), ' ');
  };
  switch (value.kind()) {
    case Json::Kind::null: out += "null"; return;
    case Json::Kind::boolean: out += value.boolean() ? "true" : "false"; return;
    case Json::Kind::integer: out += fmt::format("{}", value.integer()); return;
    case Json::Kind::number: out += std::isfinite(value.number()) ? number_text(value.number()) : "null"; return;
    case Json::Kind::string: append_escaped(out, value.string()); return;
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

template <class Number>
std::string range_text(std::string_view what, const Range<Number>& allowed, auto to_text) {
  const bool below = allowed.least > std::numeric_limits<Number>::lowest();
  const bool above = allowed.most < std::numeric_limits<Number>::max();
  if (below && above) return fmt::format("{} between {} and {}", what, to_text(allowed.least), to_text(allowed.most));
  if (below) return fmt::format("{} of at least {}", what, to_text(allowed.least));
  if (above) return fmt::format("{} of at most {}", what, to_text(allowed.most));
  return std::string(what);
}

}  // namespace

Json Json::array() { return array({}); }

Json Json::array(std::vector<Json> items) {
  Json result;
  result.kind_ = Kind::array;
  result.items_ = std::move(items);
  return result;
}

Json Json::object() { return object({}); }

Json Json::object(std::initializer_list<Member> members) {
  Json result;
  result.kind_ = Kind::object;
  result.members_ = members;
  return result;
}

Json& Json::set(std::string key, Json value) {
  ensure(kind_ == Kind::object, "only an object has members");
  for (auto& [name, member] : members_) {
    if (name == key) {
      member = std::move(value);
      return *this;
    }
  }
  members_.emplace_back(std::move(key), std::move(value));
  return *this;
}

Json& Json::push(Json value) {
  ensure(kind_ == Kind::array, "only an array has items");
  items_.push_back(std::move(value));
  return *this;
}

const Json* Json::find(std::string_view key) const {
  for (const auto& [name, member] : members_) {
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
  constexpr std::string_view names[] = {"null", "true or false", "a whole number", "a number", "a string", "a list", "an object"};
  return names[static_cast<size_t>(kind)];
}

JsonView::JsonView(const Json& value, std::string source, std::string path)
    : value_(&value), source_(std::make_shared<const std::string>(std::move(source))), path_(std::move(path)) {}

bool JsonView::has(std::string_view key) const { return find(key).has_value(); }

JsonView JsonView::at(std::string_view key) const {
  if (std::optional<JsonView> found = find(key)) return *found;
  std::vector<std::string> keys;
  for (const auto& [name, member] : value_->members()) keys.push_back(name);
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
  return JsonView(*member, source_, path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key));
}

std::vector<JsonView> JsonView::items() const {
  if (!is(Json::Kind::array)) fail(std::string(kind_name(Json::Kind::array)));
  std::vector<JsonView> views;
  for (size_t i = 0; i < value_->items().size(); ++i) {
    views.push_back(JsonView(value_->items()[i], source_, fmt::format("{}[{}]", path_, i)));
  }
  return views;
}

std::vector<std::pair<std::string, JsonView>> JsonView::members() const {
  if (!is(Json::Kind::object)) fail(std::string(kind_name(Json::Kind::object)));
  std::vector<std::pair<std::string, JsonView>> views;
  for (const auto& [name, member] : value_->members()) {
    views.emplace_back(name, JsonView(member, source_, path_.empty() ? name : fmt::format("{}.{}", path_, name)));
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
  if (!(value >= allowed.least && value <= allowed.most)) fail(range_text("a number", allowed, number_text));
  return value;
}

int64_t JsonView::integer(Range<int64_t> allowed) const {
  const auto complain = [&] { fail(range_text("a whole number", allowed, [](int64_t n) { return fmt::format("{}", n); })); };
  if (!is_number()) complain();
  int64_t value = value_->integer();
  if (is(Json::Kind::number)) {
    const double exact = value_->number();
    constexpr double largest_exact = 9007199254740992.0;  // 2^53
    if (std::trunc(exact) != exact || std::abs(exact) > largest_exact) complain();
    value = static_cast<int64_t>(exact);
  }
  if (value < allowed.least || value > allowed.most) complain();
  return value;
}

void JsonView::allow_only(std::initializer_list<std::string_view> keys) const {
  for (const auto& [name, member] : members()) {
    if (std::find(keys.begin(), keys.end(), name) != keys.end()) continue;
    const std::vector<std::string> known(keys.begin(), keys.end());
    throw InputError({.source = *source_,
                      .line = member.value().line(),
                      .path = member.path(),
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

Json parse_json(std::string_view text, const std::string& source, const JsonLimits& limits) {
  if (text.size() > limits.max_bytes) {
    throw InputError({.source = source, .value = fmt::format("{} bytes", text.size()),
                      .expected = fmt::format("at most {} bytes", limits.max_bytes)});
  }
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  size_t consumed = 0;
  JsonBuilder builder(text, source, limits, consumed);
  const CountingIterator begin(text.data(), &consumed);
  const CountingIterator end(text.data() + text.size(), &consumed);
  const bool complete = nlohmann::json::sax_parse(begin, end, &builder);
  ensure(complete, "the builder throws rather than stop a parse");
  return builder.take_root();
}

Json read_json_file(const std::filesystem::path& path, const JsonLimits& limits) {
  return parse_json(read_file(path, limits.max_bytes), path.string(), limits);
}

}  // namespace foretoken
