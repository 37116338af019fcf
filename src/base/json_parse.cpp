#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

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
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      return add(Json(static_cast<double>(value)), 1);
    return add(Json(static_cast<int64_t>(value)), 1);
  }
  bool number_float(double value, const std::string& /*text*/) { return add(Json(value), 1); }
  bool string(std::string& value) { return add(Json(std::move(value)), 0); }
  bool binary(nlohmann::json::binary_t& /*value*/) { return false; }
  bool start_object(size_t /*size*/) { return open(Json::object()); }
  bool start_array(size_t /*size*/) { return open(Json::array()); }
  bool end_object() {
    refuse_repeated_keys(std::get<Members>(open_.back()->value_));
    return close();
  }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    Json::Member& member = std::get<Members>(open_.back()->value_).emplace_back(std::move(name), Json());
    member.second.line_ = line_at(0);
    return true;
  }

  bool parse_error(size_t characters_read, const std::string& last_token, const nlohmann::json::exception& error) {
    // The character at fault is the last one read; at the end of the text that is one past it.
    const size_t at = std::min(characters_read == 0 ? 0 : characters_read - 1, text_.size());
    const size_t newline = at == 0 ? std::string_view::npos : text_.rfind('\n', at - 1);
    throw InputError({.source = source_,
                      .line = line_of(at),
                      .path = fmt::format("column {}", newline == std::string_view::npos ? at + 1 : at - newline),
                      .value = printable(last_token),
                      .expected = fmt::format("valid JSON: {}", printable(reason(error.what()), 200))});
  }

 private:
  using Members = std::vector<Json::Member>;

  // Sorted rather than searched at each key: an object of a million keys must not take a million million comparisons.
  void refuse_repeated_keys(const Members& members) const {
    std::vector<const Json::Member*> sorted;
    sorted.reserve(members.size());
    for (const Json::Member& member : members) sorted.push_back(&member);
    std::sort(sorted.begin(), sorted.end(), [](const Json::Member* a, const Json::Member* b) {
      return a->first != b->first ? a->first < b->first : a->second.line() < b->second.line();
    });
    const auto repeated =
        std::adjacent_find(sorted.begin(), sorted.end(),
                           [](const Json::Member* a, const Json::Member* b) { return a->first == b->first; });
    if (repeated == sorted.end()) return;
    const Json::Member& second = **std::next(repeated);
    throw InputError({.source = source_,
                      .line = second.second.line(),
                      .path = printable(second.first),
                      .value = printable(second.second.dump(0)),
                      .expected = "each key only once"});
  }

  // The core of "[json.exception.parse_error.101] parse error at line 1, column 2: REASON; last read: 'x'".
  static std::string_view reason(std::string_view text) {
    const auto skip_past = [&](std::string_view mark) {
      if (const size_t found = text.find(mark); found != std::string_view::npos)
        text.remove_prefix(found + mark.size());
    };
    skip_past("] ");
    if (text.starts_with("parse error at ")) skip_past(": ");
    return text.substr(0, text.find("; last read: "));
  }

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
      throw InputError(
          {.source = source_, .line = line_, .expected = fmt::format("at most {} values", limits_.max_values)});
    }
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *open_.back();
    if (auto* items = std::get_if<std::vector<Json>>(&parent.value_)) return &items->emplace_back(std::move(value));
    Json& member = std::get<Members>(parent.value_).back().second;
    member = std::move(value);
    return &member;
  }

  bool add(Json value, size_t lookahead) {
    value.line_ = line_at(lookahead);
    place(std::move(value));
    return true;
  }

  bool open(Json value) {
    value.line_ = line_at(0);
    if (static_cast<int>(open_.size()) >= limits_.max_depth) {
      throw InputError(
          {.source = source_, .line = line_, .expected = fmt::format("at most {} nested levels", limits_.max_depth)});
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

 private:
  const char* at_;
  size_t* consumed_;
};

}  // namespace

Json parse_json(std::string_view text, const std::string& source, const JsonLimits& limits) {
  if (text.size() > limits.max_bytes) {
    throw InputError({.source = source,
                      .value = fmt::format("{} bytes", text.size()),
                      .expected = fmt::format("at most {} bytes", limits.max_bytes)});
  }
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  // The parser below takes a NUL byte for the end and would not look at what follows.
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos) {
    const auto newlines = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(nul), '\n');
    throw InputError({.source = source,
                      .line = 1 + static_cast<int>(newlines),
                      .value = "a NUL byte",
                      .expected = "valid JSON: text"});
  }
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
