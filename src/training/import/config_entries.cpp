#include "training/import/config_entries.h"

#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "base/yaml.h"
#include "training/import/toml.h"

namespace foretoken {
namespace {

constexpr size_t most_entries = 100'000;

std::string joined_key(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "." + key;
}

// Texts of a list in brackets.
class ListText {
 public:
  void add(const std::string& text) { text_ += (text_.empty() ? "" : ", ") + text; }
  std::string take() const { return "[" + text_ + "]"; }

 private:
  std::string text_;
};

// A list of plain values is one entry; one that holds more is walked like a map with numbers for keys.
class TreeEntries {
 public:
  explicit TreeEntries(ConfigEntries& out) : out_(out) {}

  void walk(const YamlNode& node, const std::string& path) {
    switch (node.kind) {
      case YamlNode::Kind::null:
        return;
      case YamlNode::Kind::scalar:
        return add(path, node.scalar, node.line);
      case YamlNode::Kind::map:
        for (size_t i = 0; i < node.items.size(); ++i) walk(node.items[i], joined_key(path, node.keys[i]));
        return;
      case YamlNode::Kind::sequence:
        if (std::ranges::all_of(node.items, is_plain)) {
          ListText list;
          for (const YamlNode& item : node.items) list.add(item.scalar);
          return add(path, list.take(), node.line);
        }
        for (size_t i = 0; i < node.items.size(); ++i) walk(node.items[i], joined_key(path, std::to_string(i)));
    }
  }

  void walk(const Json& node, const std::string& path) {
    switch (node.kind()) {
      case Json::Kind::null:
        return;
      case Json::Kind::string:
        return add(path, node.string(), node.line());
      case Json::Kind::object:
        for (const auto& [key, member] : node.members()) walk(member, joined_key(path, key));
        return;
      case Json::Kind::array:
        for (size_t i = 0; i < node.items().size(); ++i) walk(node.items()[i], joined_key(path, std::to_string(i)));
        return;
      case Json::Kind::boolean:
      case Json::Kind::integer:
      case Json::Kind::number:
        return add(path, node.dump(0), node.line());
    }
  }

 private:
  static bool is_plain(const YamlNode& node) {
    return node.kind == YamlNode::Kind::scalar || node.kind == YamlNode::Kind::null;
  }

  void add(const std::string& key, std::string value, int line) {
    if (out_.entries.size() >= most_entries) {
      throw InputError({.source = out_.source, .line = line, .expected = "a configuration of at most 100000 values"});
    }
    out_.entries.push_back({.key = key, .value = std::move(value), .line = line});
  }

  ConfigEntries& out_;
};

// The whole key of a reference in an entry: `.name` is a sibling, each further dot goes up a level.
std::string referenced_key(const std::string& key, std::string_view reference) {
  if (!reference.starts_with(".")) return std::string(reference);
  std::string parent = key;
  while (reference.starts_with(".")) {
    const size_t dot = parent.rfind('.');
    parent.resize(dot == std::string::npos ? 0 : dot);
    reference.remove_prefix(1);
  }
  return joined_key(parent, std::string(reference));
}

// Follows `${key}` to the value of that key; what cannot be followed is marked.
void resolve_references(ConfigEntries& config) {
  constexpr int most_steps = 8;
  std::vector<std::pair<std::string, std::string>> values;
  for (const ConfigEntry& entry : config.entries) values.emplace_back(entry.key, entry.value);
  std::ranges::sort(values);
  const auto value_of = [&](std::string_view key) -> const std::string* {
    const auto found = std::ranges::lower_bound(values, key, {}, &std::pair<std::string, std::string>::first);
    return found != values.end() && found->first == key ? &found->second : nullptr;
  };
  for (ConfigEntry& entry : config.entries) {
    for (int step = 0; step < most_steps && entry.value.starts_with("${") && entry.value.ends_with("}"); ++step) {
      const std::string_view reference = std::string_view(entry.value).substr(2, entry.value.size() - 3);
      const std::string* target = value_of(referenced_key(entry.key, reference));
      if (target == nullptr) break;
      entry.value = *target;
    }
    entry.computed = entry.value.find("${") != std::string::npos;
  }
}

}  // namespace

const ConfigEntry* ConfigEntries::find(std::string_view key) const {
  const auto found = std::ranges::find_if(entries, [&](const ConfigEntry& entry) { return entry.key == key; });
  return found == entries.end() ? nullptr : &*found;
}

int64_t ConfigValue::count(int64_t least, int64_t most) const {
  // Python writes 1_000.
  std::string digits = entry_.value;
  std::erase(digits, '_');
  const auto value = parse_integer(digits);
  if (!value || *value < least || *value > most) {
    fail("a whole number between " + std::to_string(least) + " and " + std::to_string(most));
  }
  return *value;
}

double ConfigValue::rate() const {
  const auto value = parse_number(entry_.value);
  if (!value || *value < 0 || *value > 1) fail("a number from 0 to 1");
  return *value;
}

std::optional<bool> flag_from_text(std::string_view text) {
  const std::string word = lower_case(text);
  if (word.empty() || word == "true" || word == "yes" || word == "on" || word == "1") return true;
  if (word == "false" || word == "no" || word == "off" || word == "0") return false;
  return std::nullopt;
}

bool ConfigValue::flag() const {
  const std::optional<bool> on = flag_from_text(entry_.value);
  if (!on) fail("true or false");
  return *on;
}

void ConfigValue::fail(std::string expected, std::string suggestion) const {
  throw InputError({.source = source_,
                    .line = entry_.line,
                    .path = entry_.key,
                    .value = printable(entry_.value),
                    .expected = std::move(expected),
                    .suggestion = std::move(suggestion)});
}

ConfigEntries yaml_entries(std::string_view text, const std::string& source) {
  ConfigEntries config{.source = source};
  TreeEntries(config).walk(parse_yaml(text, source), "");
  resolve_references(config);
  return config;
}

ConfigEntries toml_entries(std::string_view text, const std::string& source) {
  ConfigEntries config{.source = source};
  TreeEntries(config).walk(parse_toml(text, source), "");
  return config;
}

ConfigEntries json_entries(std::string_view text, const std::string& source) {
  ConfigEntries config{.source = source};
  const JsonLimits limits{.max_bytes = size_t{4} << 20, .max_values = most_entries};
  TreeEntries(config).walk(parse_json(text, source, limits), "");
  return config;
}

}  // namespace foretoken
