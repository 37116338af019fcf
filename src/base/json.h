// JSON in and out. A Json value remembers the line it stood on; a JsonView adds file and path, so that every complaint
// about a value says where it is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace foretoken {

class Json {
 public:
  enum class Kind { null, boolean, integer, number, string, array, object };
  using Member = std::pair<std::string, Json>;

  Json() = default;
  Json(bool value) : kind_(Kind::boolean), boolean_(value) {}
  Json(int value) : Json(static_cast<int64_t>(value)) {}
  Json(int64_t value) : kind_(Kind::integer), integer_(value) {}
  Json(size_t value) : Json(static_cast<int64_t>(value)) {}
  Json(double value) : kind_(Kind::number), number_(value) {}
  Json(std::string value) : kind_(Kind::string), string_(std::move(value)) {}
  Json(std::string_view value) : Json(std::string(value)) {}
  Json(const char* value) : Json(std::string(value)) {}
  static Json array();
  static Json array(std::vector<Json> items);
  static Json object();
  static Json object(std::initializer_list<Member> members);

  Kind kind() const { return kind_; }
  bool boolean() const { return boolean_; }
  int64_t integer() const { return integer_; }
  double number() const { return kind_ == Kind::integer ? static_cast<double>(integer_) : number_; }
  const std::string& string() const { return string_; }
  const std::vector<Json>& items() const { return items_; }
  const std::vector<Member>& members() const { return members_; }
  int line() const { return line_; }

  // Members keep the order in which they were set; setting a key again replaces its value.
  Json& set(std::string key, Json value);
  Json& push(Json value);
  const Json* find(std::string_view key) const;

  // One document; numbers in their shortest exact form, non-finite ones as null (JSON has no NaN). indent 0: one line.
  std::string dump(int indent = 2) const;

 private:
  friend class JsonBuilder;
  Kind kind_ = Kind::null;
  bool boolean_ = false;
  int line_ = 0;
  int64_t integer_ = 0;
  double number_ = 0;
  std::string string_;
  std::vector<Json> items_;
  std::vector<Member> members_;
};

std::string_view kind_name(Json::Kind kind);

struct JsonLimits {
  size_t max_bytes = size_t{64} << 20;
  int max_depth = 64;
  size_t max_values = 4'000'000;
};

template <class Number>
struct Range {
  Number least = std::numeric_limits<Number>::lowest();
  Number most = std::numeric_limits<Number>::max();
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

  bool has(std::string_view key) const;                       // present and not null
  JsonView at(std::string_view key) const;                    // InputError when absent; suggests the nearest key
  std::optional<JsonView> find(std::string_view key) const;   // nothing when absent or null
  std::vector<JsonView> items() const;
  std::vector<std::pair<std::string, JsonView>> members() const;

  std::string string() const;
  bool boolean() const;
  double number(Range<double> allowed = {}) const;
  int64_t integer(Range<int64_t> allowed = {}) const;         // 4096.0 is accepted, 4096.5 is not

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
