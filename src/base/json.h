// JSON in and out. A Json value remembers the line it stood on; a JsonView adds file and path, so that every complaint
// about a value says where it is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/range.h"

namespace foretoken {

class Json {
 public:
  enum class Kind { null, boolean, integer, number, string, array, object };
  using Member = std::pair<std::string, Json>;

  Json();
  ~Json();
  Json(const Json&);
  Json(Json&&) noexcept;
  Json& operator=(const Json&);
  Json& operator=(Json&&) noexcept;
  Json(bool value) : value_(value) {}
  Json(int value) : value_(int64_t{value}) {}
  Json(int64_t value) : value_(value) {}
  Json(size_t value);
  Json(double value) : value_(value) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(std::string_view value) : Json(std::string(value)) {}
  Json(const char* value) : Json(std::string(value)) {}
  static Json array();
  static Json array(std::vector<Json> items);
  static Json object();
  static Json object(std::initializer_list<Member> members);

  Kind kind() const { return static_cast<Kind>(value_.index()); }

  // False, zero or empty for a value of another kind; JsonView complains instead.
  bool boolean() const;
  int64_t integer() const;
  double number() const;  // also of an integer
  const std::string& string() const;
  const std::vector<Json>& items() const;
  const std::vector<Member>& members() const;
  int line() const { return line_; }  // 0 = not read from a file
  void set_line(int line) { line_ = line; }

  // Members keep the order in which they were set; setting a key again replaces its value.
  Json& set(std::string key, Json value);
  Json& push(Json value);
  const Json* find(std::string_view key) const;
  // Calls `change` with every text in it, keys included.
  void change_texts(const std::function<void(std::string& text)>& change);

  // One document; numbers in their shortest exact form, non-finite ones as null (JSON has no NaN), broken UTF-8 as
  // U+FFFD. indent 0: one line.
  std::string dump(int indent = 2) const;

 private:
  friend class JsonParser;
  // In the order of Kind.
  std::variant<std::monostate, bool, int64_t, double, std::string, std::vector<Json>, std::vector<Member>> value_;
  int line_ = 0;
};

std::string_view kind_name(Json::Kind kind);

struct JsonLimits {
  size_t max_bytes = size_t{64} << 20;
  int max_depth = 64;
  size_t max_values = 4'000'000;
};

// A value somewhere in a document. Accessors throw InputError that names file, line, path, value and expectation.
// The document must outlive its views.
class JsonView {
 public:
  JsonView(const Json& value, std::string source, std::string path = "");

  const Json& value() const { return *value_; }
  const std::string& path() const { return path_; }
  const std::string& source() const { return *source_; }
  bool is(Json::Kind kind) const { return value_->kind() == kind; }
  bool is_number() const { return is(Json::Kind::integer) || is(Json::Kind::number); }

  bool has(std::string_view key) const;                      // present and not null
  JsonView at(std::string_view key) const;                   // InputError when absent; suggests the nearest key
  std::optional<JsonView> find(std::string_view key) const;  // nothing when absent or null
  std::vector<JsonView> items() const;
  std::vector<std::pair<std::string, JsonView>> members() const;

  std::string string() const;
  bool boolean() const;
  double number(Range<double> allowed = {}) const;
  int64_t integer(Range<int64_t> allowed = {}) const;  // 4096.0 is accepted, 4096.5 is not

  // Complains about a key that is not in the list (and suggests the nearest), so that a typo is never ignored.
  void allow_only(std::initializer_list<std::string_view> keys) const;

  [[noreturn]] void fail(std::string expected, std::string suggestion = "") const;

 private:
  JsonView(const Json& value, std::shared_ptr<const std::string> source, std::string path)
      : value_(&value), source_(std::move(source)), path_(std::move(path)) {}
  const Json* value_;
  std::shared_ptr<const std::string> source_;  // shared by all views of a document
  std::string path_;
};

// `source` names the text in errors. Duplicate keys, text after the document and broken UTF-8 are errors.
Json parse_json(std::string_view text, const std::string& source, const JsonLimits& limits = {});
Json read_json_file(const std::filesystem::path& path, const JsonLimits& limits = {});

}  // namespace foretoken
