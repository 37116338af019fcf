#include "app/endpoint/answer_schema.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <initializer_list>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace foretoken {
namespace {

using std::string_view;

constexpr int64_t largest_count = int64_t{1} << 31;  // of characters, items, properties
constexpr double largest_number = 9e15;              // below it every integer is exact

struct TextFormat {
  string_view name, example;
};
constexpr TextFormat text_formats[] = {{"date-time", "2026-01-31T12:00:00Z"},
                                       {"date", "2026-01-31"},
                                       {"time", "12:00:00Z"},
                                       {"duration", "P1D"},
                                       {"email", "user@example.com"},
                                       {"hostname", "example.com"},
                                       {"ipv4", "192.0.2.1"},
                                       {"ipv6", "2001:db8::1"},
                                       {"uri", "https://example.com/"},
                                       {"uuid", "123e4567-e89b-42d3-a456-426614174000"}};

constexpr string_view unsupported[] = {
    "pattern",     "patternProperties", "propertyNames",         "not",          "if",           "then",
    "else",        "dependentRequired", "dependentSchemas",      "dependencies", "contains",     "minContains",
    "maxContains", "unevaluatedItems",  "unevaluatedProperties", "$dynamicRef",  "$recursiveRef"};

// What says which documents fit; all other keywords describe.
constexpr string_view assertions[] = {"type",
                                      "enum",
                                      "const",
                                      "properties",
                                      "required",
                                      "additionalProperties",
                                      "minProperties",
                                      "maxProperties",
                                      "items",
                                      "prefixItems",
                                      "additionalItems",
                                      "minItems",
                                      "maxItems",
                                      "uniqueItems",
                                      "minLength",
                                      "maxLength",
                                      "format",
                                      "minimum",
                                      "maximum",
                                      "exclusiveMinimum",
                                      "exclusiveMaximum",
                                      "multipleOf",
                                      "anyOf",
                                      "oneOf",
                                      "allOf",
                                      "$ref"};

template <class List>
bool lists(const List& list, string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

bool fits_type(const Json& value, string_view type) {
  switch (value.kind()) {
    case Json::Kind::null:
      return type == "null";
    case Json::Kind::boolean:
      return type == "boolean";
    case Json::Kind::integer:
      return type == "integer" || type == "number";
    case Json::Kind::number:
      return type == "number" || (type == "integer" && std::trunc(value.number()) == value.number());
    case Json::Kind::string:
      return type == "string";
    case Json::Kind::array:
      return type == "array";
    case Json::Kind::object:
      return type == "object";
  }
  return false;
}

int64_t saturated(int64_t bytes) {
  return std::min(bytes, SchemaNode::no_document);
}
int64_t saturated_product(int64_t count, int64_t bytes) {
  if (count > 0 && bytes > SchemaNode::no_document / count) return SchemaNode::no_document;
  return saturated(count * bytes);
}

int64_t array_bytes(const SchemaNode& node, const std::vector<SchemaNode>& nodes) {
  int64_t bytes = 2;
  const auto own = std::min(node.least, static_cast<int64_t>(node.children.size()));
  for (int64_t i = 0; i < own; ++i) bytes = saturated(bytes + 1 + nodes[node.children[static_cast<size_t>(i)]].bytes);
  if (node.least > own) bytes = saturated(bytes + saturated_product(node.least - own, 1 + nodes[node.rest].bytes));
  return bytes;
}

int64_t object_bytes(const SchemaNode& node, const std::vector<SchemaNode>& nodes) {
  int64_t bytes = 2;
  for (const SchemaProperty& property : node.properties) {
    if (property.required) {
      bytes = saturated(bytes + static_cast<int64_t>(property.name.size()) + 2 + nodes[property.value].bytes);
    }
  }
  return bytes;
}

// An upper bound of what the generator writes if it adds nothing: a comma is counted with every item.
int64_t shortest_bytes_of(const SchemaNode& node, const std::vector<SchemaNode>& nodes) {
  switch (node.kind) {
    case SchemaKind::never:
      return SchemaNode::no_document;
    case SchemaKind::literal:
      return static_cast<int64_t>(node.literals.front().size());
    case SchemaKind::number:
      return static_cast<int64_t>(node.shortest_number.size());
    case SchemaKind::text:
      return 2 + node.least;
    case SchemaKind::array:
      return array_bytes(node, nodes);
    case SchemaKind::object:
      return object_bytes(node, nodes);
    case SchemaKind::alternatives: {
      int64_t bytes = SchemaNode::no_document;
      for (const size_t child : node.children) bytes = std::min(bytes, nodes[child].bytes);
      return bytes;
    }
  }
  return SchemaNode::no_document;
}

// Documents grow from the leaves: repeated until nothing gets shorter. What never gets a length has no document.
void find_shortest_documents(std::vector<SchemaNode>& nodes) {
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = nodes.size(); i-- > 0;) {
      const int64_t bytes = shortest_bytes_of(nodes[i], nodes);
      if (bytes >= nodes[i].bytes) continue;
      nodes[i].bytes = bytes;
      changed = true;
      for (const size_t child : nodes[i].children) {
        if (nodes[i].kind == SchemaKind::alternatives && nodes[child].bytes == bytes) {
          nodes[i].shortest = child;
          break;
        }
      }
    }
  }
  for (SchemaNode& node : nodes) {  // straight to the end of chains of alternatives
    while (node.shortest != SchemaNode::nothing && nodes[node.shortest].shortest != SchemaNode::nothing) {
      node.shortest = nodes[node.shortest].shortest;
    }
  }
}

struct NumberRange {
  double low = -largest_number, high = largest_number;
  bool open_low = false, open_high = false;  // the bound itself is not in it

  bool holds(double value) const {
    return (open_low ? value > low : value >= low) && (open_high ? value < high : value <= high);
  }
};

NumberRange read_range(const JsonView& schema) {
  NumberRange range;
  const auto bounded = [](const JsonView& bound) {
    return bound.number({.least = -largest_number, .most = largest_number});
  };
  if (const auto low = schema.find("minimum")) range.low = bounded(*low);
  if (const auto high = schema.find("maximum")) range.high = bounded(*high);
  // Draft 4 has truth values that belong to minimum and maximum.
  if (const auto low = schema.find("exclusiveMinimum")) {
    if (low->is(Json::Kind::boolean)) {
      range.open_low = low->boolean();
    } else if (const double bound = bounded(*low); bound >= range.low) {
      range.low = bound;
      range.open_low = true;
    }
  }
  if (const auto high = schema.find("exclusiveMaximum")) {
    if (high->is(Json::Kind::boolean)) {
      range.open_high = high->boolean();
    } else if (const double bound = bounded(*high); bound <= range.high) {
      range.high = bound;
      range.open_high = true;
    }
  }
  return range;
}

// The multiple of `step` in the range that is nearest to zero.
std::optional<int64_t> integer_in(const NumberRange& range, int64_t step) {
  const auto whole = static_cast<double>(step);
  double value = 0;
  if (range.low > 0 || (range.low == 0 && range.open_low)) {
    value = whole * std::ceil(range.low / whole);
    if (!range.holds(value)) value += whole;
  } else if (range.high < 0 || (range.high == 0 && range.open_high)) {
    value = whole * std::floor(range.high / whole);
    if (!range.holds(value)) value -= whole;
  }
  if (!range.holds(value) || std::abs(value) > largest_number) return std::nullopt;
  return static_cast<int64_t>(value);
}

void read_number(const JsonView& schema, bool whole, SchemaNode& node) {
  const NumberRange range = read_range(schema);
  int64_t step = 1;
  if (const auto multiple = schema.find("multipleOf")) {
    const double value = multiple->number({.least = 0, .most = largest_number});
    const auto integer = exact_integer(value);
    if (integer && *integer > 0) {
      step = *integer;
    } else if (value > 0 && range.holds(0)) {
      node.kind = SchemaKind::number;
      node.shortest_number = "0";
      return;
    } else {
      multiple->fail("a whole number above 0 (fractions only where 0 is allowed)");
    }
  }
  node.kind = SchemaKind::number;
  if (const auto first = integer_in(range, step)) {
    node.first = *first;
    node.step = *first < 0 || !range.holds(static_cast<double>(*first + step)) ? -step : step;
    while (node.steps < 999 && range.holds(static_cast<double>(*first + node.step * (node.steps + 1)))) ++node.steps;
    node.shortest_number = fmt::format("{}", *first);
    return;
  }
  const double middle = range.low + (range.high - range.low) / 2;
  if (whole || schema.has("multipleOf") || !range.holds(middle)) schema.fail("bounds with a number between them");
  node.shortest_number = number_text(middle);
}

int64_t count_at(const JsonView& schema, string_view keyword, int64_t otherwise) {
  const auto found = schema.find(keyword);
  return found ? found->integer({.least = 0, .most = largest_count}) : otherwise;
}

void read_bounds(const JsonView& schema, string_view least, string_view most, SchemaNode& node) {
  node.least = count_at(schema, least, 0);
  node.most = count_at(schema, most, SchemaNode::unlimited);
  if (node.least > node.most) schema.at(most).fail(fmt::format("at least {}", least));
}

void read_text(const JsonView& schema, SchemaNode& node) {
  node.kind = SchemaKind::text;
  read_bounds(schema, "minLength", "maxLength", node);
  const auto format = schema.find("format");
  if (!format) return;
  const std::string name = format->string();
  for (const TextFormat& known : text_formats) {
    if (known.name != name) continue;
    const auto length = static_cast<int64_t>(known.example.size());
    if (length < node.least || length > node.most) format->fail("a minLength and maxLength that fit this format");
    node.kind = SchemaKind::literal;
    node.literals = {fmt::format("\"{}\"", known.example)};
    node.of_format = true;
  }
}

class SchemaReader {
 public:
  explicit SchemaReader(const JsonView& root) : root_(root) {}

  AnswerSchema read() {
    node_of(root_);
    while (!waiting_.empty()) {
      const auto [node, view] = waiting_.front();
      waiting_.pop_front();
      // Filled aside: nodes move when there are more of them.
      SchemaNode filled = node_from(view);
      nodes_[node] = std::move(filled);
    }
    find_singles();
    for (const auto& [node, view] : exclusive_) check_exclusive(nodes_[node], view);
    find_shortest_documents(nodes_);
    const int64_t bytes = nodes_.front().bytes;
    if (bytes >= SchemaNode::no_document)
      root_.fail("a schema that some document can follow; nothing follows this one");
    if (bytes > longest_schema_document) {
      root_.fail(fmt::format("a schema whose shortest document has at most {} bytes", longest_schema_document));
    }
    return {.nodes = std::move(nodes_)};
  }

 private:
  size_t new_node() {
    if (nodes_.size() >= most_schema_nodes) root_.fail(fmt::format("at most {} subschemas", most_schema_nodes));
    nodes_.emplace_back();
    return nodes_.size() - 1;
  }
  size_t node_of(const JsonView& view) {
    const auto [found, is_new] = known_.try_emplace(&view.value(), SchemaNode::nothing);
    if (!is_new) return found->second;
    const size_t node = new_node();
    known_[&view.value()] = node;
    waiting_.emplace_back(node, view);
    return node;
  }
  size_t any_value() {
    if (any_ == SchemaNode::nothing) {
      any_ = new_node();
      nodes_[any_].kind = SchemaKind::text;  // the simplest of all values
    }
    return any_;
  }

  SchemaNode node_from(const JsonView& view) {
    if (view.is(Json::Kind::boolean)) {
      return view.boolean() ? SchemaNode{.kind = SchemaKind::text, .takes_other_types = true} : SchemaNode{};
    }
    if (!view.is(Json::Kind::object)) view.fail("a JSON Schema: an object, true or false");
    for (const auto& [name, value] : view.members()) {
      if (lists(unsupported, name)) value.fail(fmt::format("no \"{}\": this keyword is not simulated", name));
    }
    for (const char* keyword : {"$ref", "anyOf", "oneOf", "allOf"}) {
      if (view.has(keyword)) return combined(view, keyword);
    }
    if (view.value().find("enum") != nullptr || view.value().find("const") != nullptr) return literals(view);
    return typed(view);
  }

  // Refuses what would have to hold besides these keywords.
  static void only(const JsonView& view, std::initializer_list<string_view> keywords) {
    for (const auto& [name, value] : view.members()) {
      if (lists(assertions, name) && !lists(keywords, name)) {
        value.fail(fmt::format(R"(no "{}" with "{}": this combination is not simulated)", name, *keywords.begin()));
      }
    }
  }

  SchemaNode combined(const JsonView& view, const char* keyword) {
    only(view, {keyword});
    SchemaNode node{.kind = SchemaKind::alternatives};
    if (string_view(keyword) == "$ref") {
      node.children.push_back(node_of(referred(view.at(keyword))));
      return node;
    }
    const JsonView list = view.at(keyword);
    for (const JsonView& one : list.items()) node.children.push_back(node_of(one));
    if (node.children.empty()) list.fail("at least one schema");
    if (string_view(keyword) == "allOf" && node.children.size() > 1) {
      list.fail("one schema: allOf with several schemas is not simulated");
    }
    if (string_view(keyword) == "oneOf") exclusive_.emplace_back(known_.at(&view.value()), list);
    return node;
  }

  JsonView referred(const JsonView& reference) const {
    const std::string text = reference.string();
    if (text != "#" && !text.starts_with("#/")) reference.fail("a reference into this schema: # or #/$defs/NAME");
    JsonView at = root_;
    if (text == "#") return at;
    for (const string_view part : split(string_view(text).substr(2), "/")) {
      std::string key;
      for (size_t i = 0; i < part.size(); ++i) {
        const string_view escape = part.substr(i, 2);
        key += escape == "~1" ? '/' : part[i];
        if (escape == "~0" || escape == "~1") ++i;
      }
      if (at.is(Json::Kind::array)) {
        const auto index = parse_integer(key);
        const std::vector<JsonView> items = at.items();
        if (!index || *index < 0 || *index >= static_cast<int64_t>(items.size()))
          reference.fail("a path in this schema");
        at = items[static_cast<size_t>(*index)];
      } else {
        if (!at.is(Json::Kind::object) || at.value().find(key) == nullptr) reference.fail("a path in this schema");
        at = JsonView(*at.value().find(key), root_.source(), fmt::format("{}.{}", at.path(), key));
      }
    }
    return at;
  }

  SchemaNode literals(const JsonView& view) {
    const bool constant = view.value().find("const") != nullptr;
    only(view, {constant ? "const" : "enum", "type"});
    SchemaNode node{.kind = SchemaKind::literal};
    const std::vector<std::string> types = types_of(view);
    const auto add = [&](const Json& value) {
      const auto fits = [&](const std::string& type) { return fits_type(value, type); };
      if (types.empty() || std::any_of(types.begin(), types.end(), fits)) node.literals.push_back(ascii_json(value));
    };
    if (constant) {
      add(*view.value().find("const"));
    } else {
      const JsonView list = view.at("enum");
      for (const JsonView& value : list.items()) add(value.value());
      literals_ += node.literals.size();
      if (literals_ > most_schema_literals) {
        list.fail(fmt::format("at most {} values of enums in one schema", most_schema_literals));
      }
    }
    if (node.literals.empty()) view.fail("at least one value of the type");
    const auto shorter = [](const std::string& a, const std::string& b) { return a.size() < b.size(); };
    std::iter_swap(node.literals.begin(), std::min_element(node.literals.begin(), node.literals.end(), shorter));
    return node;
  }

  static std::vector<std::string> types_of(const JsonView& view) {
    constexpr string_view known[] = {"null", "boolean", "integer", "number", "string", "array", "object"};
    std::vector<std::string> types;
    const auto type = view.find("type");
    if (!type) return types;
    const auto add = [&](const JsonView& one) {
      types.push_back(one.string());
      if (!lists(known, types.back())) one.fail(fmt::format("one of {}", fmt::join(known, ", ")));
    };
    if (type->is(Json::Kind::array)) {
      for (const JsonView& one : type->items()) add(one);
      if (types.empty()) type->fail("at least one type");
    } else {
      add(*type);
    }
    return types;
  }

  SchemaNode typed(const JsonView& view) {
    const std::vector<std::string> types = types_of(view);
    if (types.empty()) {
      SchemaNode node = of_type(view, implied_type(view));
      node.takes_other_types = true;
      return node;
    }
    if (types.size() == 1) return of_type(view, types.front());
    SchemaNode node{.kind = SchemaKind::alternatives};
    for (const std::string& type : types) {
      const size_t child = new_node();
      SchemaNode filled = of_type(view, type);
      nodes_[child] = std::move(filled);
      node.children.push_back(child);
    }
    return node;
  }

  static std::string implied_type(const JsonView& view) {
    constexpr std::pair<string_view, string_view> implied[] = {
        {"properties", "object"},    {"required", "object"},   {"additionalProperties", "object"},
        {"items", "array"},          {"prefixItems", "array"}, {"minItems", "array"},
        {"minimum", "number"},       {"maximum", "number"},    {"multipleOf", "number"},
        {"minProperties", "object"}, {"maxItems", "array"}};
    for (const auto& [keyword, type] : implied) {
      if (view.has(keyword)) return std::string(type);
    }
    return "string";
  }

  SchemaNode of_type(const JsonView& view, string_view type) {
    SchemaNode node;
    if (type == "null" || type == "boolean") {
      node.kind = SchemaKind::literal;
      node.literals = type == "null" ? std::vector<std::string>{"null"} : std::vector<std::string>{"true", "false"};
    } else if (type == "integer" || type == "number") {
      read_number(view, type == "integer", node);
    } else if (type == "string") {
      read_text(view, node);
    } else if (type == "array") {
      read_array(view, node);
    } else {
      read_object(view, node);
    }
    return node;
  }

  void read_array(const JsonView& view, SchemaNode& node) {
    node.kind = SchemaKind::array;
    read_bounds(view, "minItems", "maxItems", node);
    const auto items = view.find("items");
    const bool listed = items && items->is(Json::Kind::array);  // as drafts before 2020-12 have it
    if (const auto first = listed ? items : view.find("prefixItems")) {
      for (const JsonView& item : first->items()) node.children.push_back(node_of(item));
    }
    const auto rest = listed ? view.find("additionalItems") : items;
    node.rest = rest ? node_of(*rest) : any_value();
    if (const auto unique = view.find("uniqueItems"); unique && unique->boolean()) {
      if (node.least > 1) unique->fail("false if minItems is above 1: unique items are not simulated");
      node.most = std::min<int64_t>(node.most, 1);
    }
  }

  void read_object(const JsonView& view, SchemaNode& node) {
    node.kind = SchemaKind::object;
    read_bounds(view, "minProperties", "maxProperties", node);
    std::vector<std::string> required;
    if (const auto names = view.find("required")) {
      for (const JsonView& name : names->items()) required.push_back(name.string());
      names_ += required.size();
      if (names_ > most_schema_nodes) names->fail(fmt::format("at most {} names in one schema", most_schema_nodes));
    }
    std::unordered_map<std::string, bool> declared;
    if (const auto properties = view.find("properties")) {
      for (const auto& [name, value] : properties->members()) {
        declared[name] = true;
        node.properties.push_back(
            {.name = ascii_json(name), .value = node_of(value), .required = lists(required, name)});
      }
    }
    for (const std::string& name : required) {
      if (!declared.try_emplace(name, true).second) continue;
      const auto other = view.find("additionalProperties");
      node.properties.push_back(
          {.name = ascii_json(name), .value = other ? node_of(*other) : any_value(), .required = true});
    }
    check_count(view, node);
  }

  // The first optional properties become required where minProperties asks for more.
  static void check_count(const JsonView& view, SchemaNode& node) {
    int64_t count = 0;
    for (const SchemaProperty& property : node.properties) count += property.required ? 1 : 0;
    if (count > node.most) view.at("maxProperties").fail("at least the number of required properties");
    for (SchemaProperty& property : node.properties) {
      if (count >= node.least) break;
      if (!std::exchange(property.required, true)) ++count;
    }
    if (count < node.least) view.at("minProperties").fail("at most the number of declared properties");
  }

  void find_singles() {
    single_.assign(nodes_.size(), SchemaNode::nothing);
    for (size_t i = 0; i < nodes_.size(); ++i) {
      size_t node = i;
      for (size_t seen = 0;
           seen < nodes_.size() && nodes_[node].children.size() == 1 && nodes_[node].kind == SchemaKind::alternatives;
           ++seen) {
        node = nodes_[node].children.front();
      }
      if (nodes_[node].kind != SchemaKind::alternatives) single_[i] = node;
    }
  }
  const SchemaNode* single(size_t node) const {
    return single_[node] == SchemaNode::nothing ? nullptr : &nodes_[single_[node]];
  }

  // Found once for each pair of nodes, however many objects refer to them.
  bool share_literal(const SchemaNode& a, const SchemaNode& b) {
    const auto [known, is_new] = shared_.try_emplace({&a, &b}, false);
    if (is_new) {
      known->second = std::any_of(a.literals.begin(), a.literals.end(),
                                  [&](const std::string& literal) { return lists(b.literals, literal); });
    }
    return known->second;
  }

  bool told_apart_by_property(const SchemaNode& a, const SchemaNode& b) {
    for (const SchemaProperty& of_a : a.properties) {
      for (const SchemaProperty& of_b : b.properties) {
        if (!of_a.required || !of_b.required || of_a.name != of_b.name) continue;
        const SchemaNode* const in_a = single(of_a.value);
        const SchemaNode* const in_b = single(of_b.value);
        if (in_a == nullptr || in_b == nullptr) continue;
        if (is_constant(*in_a) && is_constant(*in_b) && !share_literal(*in_a, *in_b)) return true;
      }
    }
    return false;
  }

  // Constants, as opposed to an example of what a text may be.
  static bool is_constant(const SchemaNode& node) { return node.kind == SchemaKind::literal && !node.of_format; }

  // No document made for one of them follows the other.
  bool never_both(const SchemaNode& a, const SchemaNode& b) {
    if (a.kind == SchemaKind::never || b.kind == SchemaKind::never) return true;
    const bool are_objects = a.kind == SchemaKind::object && b.kind == SchemaKind::object;
    if ((a.takes_other_types || b.takes_other_types) && !are_objects) return false;
    if (is_constant(a) && is_constant(b)) return !share_literal(a, b);
    if (is_constant(b)) return never_both(b, a);
    const SchemaKind kind = b.of_format ? SchemaKind::text : b.kind;
    if (is_constant(a)) {
      return std::none_of(a.literals.begin(), a.literals.end(), [&](const auto& one) { return may_be(one, kind); });
    }
    if ((a.of_format ? SchemaKind::text : a.kind) != kind) return true;
    return are_objects && told_apart_by_property(a, b);
  }

  static bool may_be(const std::string& literal, SchemaKind kind) {
    const char first = literal.front();
    if (kind == SchemaKind::text) return first == '"';
    if (kind == SchemaKind::array) return first == '[';
    if (kind == SchemaKind::object) return first == '{';
    return first == '-' || (first >= '0' && first <= '9');
  }

  void check_exclusive(const SchemaNode& node, const JsonView& list) {
    for (size_t i = 0; i < node.children.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        const SchemaNode* const a = single(node.children[i]);
        const SchemaNode* const b = single(node.children[j]);
        if (a == nullptr || b == nullptr || !never_both(*a, *b)) {
          list.fail(
              "schemas that each name another type, or differ in the constant of a required property; or use anyOf");
        }
      }
    }
  }

  JsonView root_;
  std::vector<SchemaNode> nodes_;
  std::unordered_map<const Json*, size_t> known_;
  std::deque<std::pair<size_t, JsonView>> waiting_;     // nodes that are not read yet
  std::vector<std::pair<size_t, JsonView>> exclusive_;  // of oneOf
  size_t any_ = SchemaNode::nothing;
  std::vector<size_t> single_;  // by node: the one behind references; nothing for real alternatives and circles
  size_t names_ = 0;            // of required properties
  size_t literals_ = 0;         // of enums
  std::map<std::pair<const SchemaNode*, const SchemaNode*>, bool> shared_;  // whether both have a literal
};

// The code point at the front of well-formed UTF-8.
uint32_t code_point(string_view text, size_t length) {
  const auto first = static_cast<unsigned char>(text.front());
  if (length == 1) return first;
  uint32_t code = first & (0xffU >> (length + 1));
  for (size_t i = 1; i < length; ++i) code = (code << 6U) | (static_cast<unsigned char>(text[i]) & 0x3fU);
  return code;
}

}  // namespace

std::string ascii_json(const Json& value) {
  const std::string text = value.dump(0);
  std::string ascii;
  for (size_t at = 0; at < text.size();) {
    const string_view rest = string_view(text).substr(at);
    const size_t length = std::max<size_t>(1, utf8_length(rest));
    const uint32_t code = code_point(rest, length);
    if (code < 0x7f) {
      ascii += text[at];
    } else if (code < 0x10000) {
      fmt::format_to(std::back_inserter(ascii), "\\u{:04x}", code);
    } else {
      fmt::format_to(std::back_inserter(ascii), "\\u{:04x}\\u{:04x}", 0xd800 + ((code - 0x10000) >> 10U),
                     0xdc00 + (code & 0x3ffU));
    }
    at += length;
  }
  return ascii;
}

bool AnswerSchema::makes_objects() const {
  std::vector<bool> seen(nodes.size());
  std::vector<size_t> open = {0};
  while (!open.empty()) {
    const SchemaNode& node = nodes[open.back()];
    const bool again = seen[open.back()];
    seen[open.back()] = true;
    open.pop_back();
    if (again || node.bytes >= SchemaNode::no_document) continue;
    if (node.kind == SchemaKind::alternatives) {
      open.insert(open.end(), node.children.begin(), node.children.end());
    } else if (node.kind != SchemaKind::object &&
               (node.kind != SchemaKind::literal ||
                !std::all_of(node.literals.begin(), node.literals.end(),
                             [](const std::string& literal) { return literal.front() == '{'; }))) {
      return false;
    }
  }
  return true;
}

AnswerSchema read_answer_schema(const JsonView& schema) {
  return SchemaReader(schema).read();
}

AnswerSchema any_json_object() {
  const Json schema = Json::object({{"required", Json::array({"answer"})}});
  return read_answer_schema(JsonView(schema, "schema"));
}

}  // namespace foretoken
