#include "model/config_reader.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace foretoken {

std::string ConfigReader::model_type() const {
  for (const JsonView* part : {&whole_, &text_}) {
    if (const auto type = part->find("model_type"); type && type->is(Json::Kind::string)) return type->string();
  }
  return "";
}

int64_t ConfigReader::size(std::string_view key, int64_t most) const {
  return text_.at(key).integer({.least = 1, .most = most});
}

int64_t ConfigReader::size(std::initializer_list<std::string_view> keys, int64_t most) const {
  for (const std::string_view key : keys) {
    if (has(key)) return size(key, most);
  }
  return size(*keys.begin(), most);
}

int64_t ConfigReader::size_or(std::string_view key, int64_t fallback, int64_t most) const {
  const auto value = text_.find(key);
  return value ? value->integer({.least = 1, .most = most}) : fallback;
}

int64_t ConfigReader::count_or(std::string_view key, int64_t fallback, int64_t most) const {
  const auto value = text_.find(key);
  return value ? value->integer({.least = 0, .most = most}) : fallback;
}

int64_t ConfigReader::size_or_note(std::string_view key, int64_t fallback) {
  if (!has(key)) note(fmt::format("config has no {}: the publisher's default {} is used", key, fallback));
  return size_or(key, fallback);
}

bool ConfigReader::flag(std::string_view key, bool fallback) const {
  const auto value = text_.find(key);
  return value ? value->boolean() : fallback;
}

double ConfigReader::fraction(std::string_view key, double fallback) const {
  const auto value = text_.find(key);
  return value ? value->number({.least = 0, .most = 1}) : fallback;
}

std::optional<std::vector<int64_t>> ConfigReader::per_layer_numbers(std::string_view key, int64_t layers,
                                                                    int64_t most) const {
  const auto list = text_.find(key);
  if (!list) return std::nullopt;
  std::vector<int64_t> numbers;
  for (const JsonView& item : list->items()) numbers.push_back(item.integer({.least = 0, .most = most}));
  if (std::cmp_less(numbers.size(), layers)) list->fail(fmt::format("one number for each of the {} layers", layers));
  return numbers;
}

std::optional<std::vector<std::string>> ConfigReader::per_layer_words(
    std::string_view key, int64_t layers, std::initializer_list<std::string_view> allowed) const {
  const auto list = text_.find(key);
  if (!list) return std::nullopt;
  std::vector<std::string> words;
  for (const JsonView& item : list->items()) {
    words.push_back(item.string());
    if (std::find(allowed.begin(), allowed.end(), words.back()) == allowed.end()) {
      item.fail(fmt::format("one of {}", fmt::join(allowed, ", ")));
    }
  }
  if (std::cmp_less(words.size(), layers)) list->fail(fmt::format("one word for each of the {} layers", layers));
  return words;
}

std::vector<int64_t> ConfigReader::layer_numbers(std::string_view key) const {
  std::vector<int64_t> numbers;
  if (const auto list = text_.find(key)) {
    const std::vector<JsonView> items = list->items();
    if (std::cmp_greater(items.size(), most_layers)) list->fail(fmt::format("at most {} layer numbers", most_layers));
    for (const JsonView& item : items) numbers.push_back(item.integer({.least = 0, .most = most_layers}));
  }
  return numbers;
}

std::optional<ConfigReader> ConfigReader::inside(std::string_view key) const {
  const auto part = text_.find(key);
  if (!part) return std::nullopt;
  if (!part->is(Json::Kind::object)) part->fail("an object");
  return ConfigReader(*part, whole_);
}

}  // namespace foretoken
