#include "training/import/toml.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace foretoken {
namespace {

constexpr size_t toml_most_bytes = size_t{4} << 20, toml_most_values = 10'000;
constexpr int toml_most_levels = 64;

bool is_bare_key(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

class TomlReader {
 public:
  TomlReader(std::string_view text, const std::string& source) : text_(text), source_(source) {}

  YamlNode read() {
    if (text_.size() > toml_most_bytes) fail("a file of at most 4 MiB");
    YamlNode root{.kind = YamlNode::Kind::map, .line = 1};
    std::vector<std::string> table;
    for (skip_lines(); !at_end(); skip_lines()) {
      if (peek() == '[') {
        table = header(root);
      } else {
        // The table is looked up anew: the vectors that hold it may have grown.
        assign(table_at(root, table));
      }
      end_of_line();
    }
    return root;
  }

 private:
  [[noreturn]] void fail(std::string expected) const {
    throw InputError({.source = source_, .line = line_, .expected = std::move(expected)});
  }

  bool at_end() const { return at_ >= text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[at_]; }
  bool starts_with(std::string_view words) const { return text_.substr(at_).starts_with(words); }
  char take() {
    const char c = peek();
    if (c == '\n') ++line_;
    ++at_;
    return c;
  }
  void expect(char wanted) {
    if (peek() != wanted) fail(std::string("`") + wanted + "`");
    take();
  }

  void skip_blanks() {
    while (!at_end() && (peek() == ' ' || peek() == '\t' || peek() == '\r')) take();
  }
  void skip_comment() {
    if (peek() == '#') at_ = std::min(text_.find('\n', at_), text_.size());
  }
  void skip_lines() {
    for (;;) {
      skip_blanks();
      skip_comment();
      if (peek() != '\n' || at_end()) return;
      take();
    }
  }
  void end_of_line() {
    skip_blanks();
    skip_comment();
    if (!at_end() && peek() != '\n') fail("the end of the line, or a comment");
  }

  std::vector<std::string> dotted_key() {
    std::vector<std::string> parts;
    for (;;) {
      skip_blanks();
      if (peek() == '"' || peek() == '\'') {
        parts.push_back(quoted());
      } else {
        const size_t start = at_;
        while (!at_end() && is_bare_key(peek())) take();
        if (at_ == start) fail("a key");
        parts.emplace_back(text_.substr(start, at_ - start));
      }
      if (parts.size() > toml_most_levels) fail("at most 64 levels");
      skip_blanks();
      if (peek() != '.') return parts;
      take();
    }
  }

  // The map of that name under `parent`, made if there is none; of a list of tables, the last one.
  YamlNode& child_table(YamlNode& parent, const std::string& key) {
    const auto found = std::ranges::find(parent.keys, key);
    if (found == parent.keys.end()) return add(parent, key, {.kind = YamlNode::Kind::map, .line = line_});
    YamlNode& child = parent.items[static_cast<size_t>(found - parent.keys.begin())];
    if (child.kind == YamlNode::Kind::map) return child;
    if (child.kind != YamlNode::Kind::sequence || child.items.empty() ||
        child.items.back().kind != YamlNode::Kind::map) {
      fail("a key that has no value yet: " + printable(key) + " has one");
    }
    return child.items.back();
  }
  YamlNode& table_at(YamlNode& root, const std::vector<std::string>& path) {
    YamlNode* table = &root;
    for (const std::string& key : path) table = &child_table(*table, key);
    return *table;
  }

  YamlNode& add(YamlNode& parent, const std::string& key, YamlNode value) {
    if (++values_ > toml_most_values) fail("at most 10000 values");
    if (std::ranges::find(parent.keys, key) != parent.keys.end()) {
      fail("a key that is not set twice: " + printable(key) + " is");
    }
    parent.keys.push_back(key);
    return parent.items.emplace_back(std::move(value));
  }

  // [name] or [[name]]; returns the path of the table.
  std::vector<std::string> header(YamlNode& root) {
    expect('[');
    const bool list = peek() == '[';
    if (list) take();
    std::vector<std::string> path = dotted_key();
    expect(']');
    if (list) {
      expect(']');
      append_table(root, path);
    } else {
      table_at(root, path);
    }
    return path;
  }
  void append_table(YamlNode& root, const std::vector<std::string>& path) {
    YamlNode& parent = table_at(root, {path.begin(), path.end() - 1});
    const auto found = std::ranges::find(parent.keys, path.back());
    YamlNode& list = found == parent.keys.end()
                         ? add(parent, path.back(), {.kind = YamlNode::Kind::sequence, .line = line_})
                         : parent.items[static_cast<size_t>(found - parent.keys.begin())];
    if (list.kind != YamlNode::Kind::sequence) fail("a list of tables: " + printable(path.back()) + " is none");
    if (++values_ > toml_most_values) fail("at most 10000 values");
    list.items.push_back({.kind = YamlNode::Kind::map, .line = line_});
  }

  void assign(YamlNode& table, int depth = 0) {
    std::vector<std::string> path = dotted_key();
    expect('=');
    const std::string name = path.back();
    path.pop_back();
    YamlNode result = value(depth);
    add(table_at(table, path), name, std::move(result));
  }

  YamlNode value(int depth) {
    if (depth > toml_most_levels) fail("at most 64 levels");
    skip_blanks();
    const int line = line_;
    switch (peek()) {
      case '"':
      case '\'':
        return {.kind = YamlNode::Kind::scalar, .line = line, .scalar = quoted(), .quoted = true};
      case '[':
        return array(depth);
      case '{':
        return inline_table(depth);
      default:
        return {.kind = YamlNode::Kind::scalar, .line = line, .scalar = literal()};
    }
  }

  // Numbers, true, false and dates.
  std::string literal() {
    const size_t start = at_;
    while (!at_end() && (is_bare_key(peek()) || peek() == '+' || peek() == '.' || peek() == ':')) take();
    if (at_ == start) fail("a value");
    return std::string(text_.substr(start, at_ - start));
  }

  YamlNode array(int depth) {
    YamlNode list{.kind = YamlNode::Kind::sequence, .line = line_};
    expect('[');
    for (skip_lines(); peek() != ']'; skip_lines()) {
      if (++values_ > toml_most_values) fail("at most 10000 values");
      list.items.push_back(value(depth + 1));
      skip_lines();
      if (peek() != ',') break;
      take();
    }
    skip_lines();
    expect(']');
    return list;
  }

  YamlNode inline_table(int depth) {
    YamlNode table{.kind = YamlNode::Kind::map, .line = line_};
    expect('{');
    skip_blanks();
    if (peek() != '}') {
      for (;;) {
        assign(table, depth + 1);
        skip_blanks();
        if (peek() != ',') break;
        take();
      }
    }
    expect('}');
    return table;
  }

  std::string quoted() {
    const char quote = peek();
    const std::string triple(3, quote);
    if (!starts_with(triple)) {
      take();
      return until(std::string_view(&quote, 1), quote == '"', false);
    }
    for (int i = 0; i < 3; ++i) take();
    if (peek() == '\n') take();  // a line break right after the quotes does not count
    return until(triple, quote == '"', true);
  }

  std::string until(std::string_view end, bool escapes, bool lines) {
    std::string result;
    while (!starts_with(end)) {
      if (at_end() || (!lines && peek() == '\n')) fail("a closing quote");
      if (escapes && peek() == '\\') {
        take();
        result += escaped();
      } else {
        result += take();
      }
    }
    at_ += end.size();
    return result;
  }

  // Characters beyond ASCII keep their escape: no setting that is read has them.
  std::string escaped() {
    constexpr std::pair<char, std::string_view> known[] = {{'n', "\n"}, {'t', "\t"}, {'r', "\r"}, {'b', "\b"},
                                                           {'f', "\f"}, {'"', "\""}, {'\\', "\\"}};
    const char c = peek();
    for (const auto& [letter, meaning] : known) {
      if (c != letter) continue;
      take();
      return std::string(meaning);
    }
    if (c == 'u' || c == 'U') return "\\";
    if (c != '\n' && c != ' ') fail("one of the escapes of TOML");
    while (!at_end() && (peek() == ' ' || peek() == '\t' || peek() == '\r' || peek() == '\n')) take();
    return {};
  }

  std::string_view text_;
  const std::string& source_;
  size_t at_ = 0, values_ = 0;
  int line_ = 1;
};

}  // namespace

YamlNode parse_toml(std::string_view text, const std::string& source) {
  return TomlReader(text, source).read();
}

bool looks_like_toml(std::string_view text) {
  for (std::string_view line : split(text, "\n")) {
    while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
    if (line.empty() || line.front() == '#' || line.front() == '\r') continue;
    if (line.front() == '[') return true;
    const auto key = static_cast<size_t>(
        std::ranges::find_if_not(line, [](char c) { return is_bare_key(c) || c == '.' || c == '"'; }) - line.begin());
    const size_t sign = line.find_first_not_of(" \t", key);
    return key > 0 && sign != std::string_view::npos && line[sign] == '=';
  }
  return false;
}

}  // namespace foretoken
