// Reads the keys of one config.json with bounds, so that a broken number is an InputError and never a huge loop.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace foretoken {

class ConfigReader {
 public:
  static constexpr int64_t largest_dimension = 10'000'000;
  static constexpr int64_t most_layers = 10'000;

  // `text` is the language model's part; `whole` the document it may be nested in.
  ConfigReader(JsonView text, JsonView whole) : text_(std::move(text)), whole_(std::move(whole)) {}

  const JsonView& text() const { return text_; }
  const JsonView& whole() const { return whole_; }
  std::string model_type() const;  // of the whole document, else of the text part; may be empty

  bool has(std::string_view key) const { return text_.has(key); }

  // A required size, at least 1. With several keys: the first that is present (families rename the same thing).
  int64_t size(std::string_view key, int64_t most = largest_dimension) const;
  int64_t size(std::initializer_list<std::string_view> keys, int64_t most = largest_dimension) const;
  // An optional size: absent or null gives the fallback. `size_or` is at least 1, `count_or` may be 0.
  int64_t size_or(std::string_view key, int64_t fallback, int64_t most = largest_dimension) const;
  int64_t count_or(std::string_view key, int64_t fallback, int64_t most = largest_dimension) const;
  // An optional size whose absence is worth a note, because the fallback is what the publisher's own code assumes.
  int64_t size_or_note(std::string_view key, int64_t fallback);

  bool flag(std::string_view key, bool fallback) const;
  double fraction(std::string_view key, double fallback) const;  // 0..1

  // A per-layer list; nothing when absent. InputError unless it has at least `layers` entries.
  std::optional<std::vector<int64_t>> per_layer_numbers(std::string_view key, int64_t layers, int64_t most) const;
  std::optional<std::vector<std::string>> per_layer_words(std::string_view key, int64_t layers,
                                                          std::initializer_list<std::string_view> allowed) const;
  // A list of layer numbers; empty when absent.
  std::vector<int64_t> layer_numbers(std::string_view key) const;

  std::optional<ConfigReader> inside(std::string_view key) const;  // a nested object

  void note(std::string text) { notes_.push_back(std::move(text)); }
  std::vector<std::string>& notes() { return notes_; }

 private:
  JsonView text_, whole_;
  std::vector<std::string> notes_;
};

}  // namespace foretoken
