#include "base/yaml_json.h"

#include "base/error.h"
#include "base/text.h"

namespace foretoken {
namespace {

constexpr std::string_view merge_key = "<<";

Json scalar_of_yaml(const YamlNode& node) {
  const std::string& text = node.scalar;
  if (node.quoted) return text;
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") return {};
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  if (text.find_first_of(".eE") == std::string::npos) {
    if (const auto integer = parse_integer(text)) return *integer;
  }
  if (const auto number = parse_number(text)) return *number;
  return text;
}

void add_merged(const YamlNode& from, const std::string& source, Json& to) {
  if (from.kind == YamlNode::Kind::sequence) {
    for (const YamlNode& item : from.items) add_merged(item, source, to);
    return;
  }
  if (from.kind != YamlNode::Kind::map) {
    throw InputError(
        {.source = source, .line = from.line, .path = "<<", .expected = "a map to merge, or a list of maps"});
  }
  const Json merged = json_of_yaml(from, source);
  for (const auto& [key, value] : merged.members()) {
    if (key != yaml_tag_key && to.find(key) == nullptr) to.set(key, value);
  }
}

}  // namespace

Json json_of_yaml(const YamlNode& node, const std::string& source) {
  Json value;
  if (node.kind == YamlNode::Kind::scalar) value = scalar_of_yaml(node);
  if (node.kind == YamlNode::Kind::sequence) {
    value = Json::array();
    for (const YamlNode& item : node.items) value.push(json_of_yaml(item, source));
  }
  if (node.kind == YamlNode::Kind::map) {
    value = Json::object();
    if (!node.tag.empty()) value.set(std::string(yaml_tag_key), node.tag);
    for (size_t i = 0; i < node.items.size(); ++i) {
      if (node.keys[i] != merge_key) value.set(node.keys[i], json_of_yaml(node.items[i], source));
    }
    if (const YamlNode* base = node.find(merge_key)) add_merged(*base, source, value);
  }
  value.set_line(node.line);
  return value;
}

}  // namespace foretoken
