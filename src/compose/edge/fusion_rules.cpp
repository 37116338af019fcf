#include "compose/edge/fusion_rules.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/kinds.h"
#include "compose/edge/transposes.h"
#include "model/onnx/node_view.h"
#include "model/onnx/onnx_operator.h"

namespace foretoken {
namespace {

constexpr const char* rules_format = "foretoken-fusion-rules";
constexpr size_t most_rules = 1000, most_pattern_nodes = 16, most_optional = 4, most_operations = 64;

struct NamedCondition {
  std::string_view name;
  FusionCondition condition;
};
constexpr NamedCondition conditions[] = {
    {"last_axis", FusionCondition::last_axis},
    {"swaps_last_axes", FusionCondition::swaps_last_axes},
    {"moves_first_axis", FusionCondition::moves_first_axis},
    {"same_shapes", FusionCondition::same_shapes},
};

constexpr std::string_view activation_kinds[] = {"none", "relu", "clip", "swish"};

FusionCondition read_condition(const JsonView& view) {
  return kind_in(view, conditions).condition;
}

// A rule as its file has it: some nodes may be missing from a match.
struct WrittenRule {
  FusionRule rule;
  std::vector<bool> optional;
  std::optional<size_t> adds;  // the node that adds the other branch of a residual
};

size_t node_index(const JsonView& view, const std::vector<FusionNode>& nodes) {
  const std::string id = view.string();
  std::vector<std::string> ids;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].id == id) return i;
    ids.push_back(nodes[i].id);
  }
  view.fail(fmt::format("a node of the pattern: {}", fmt::join(ids, ", ")), nearest_name(id, ids).value_or(""));
}

FusionInput read_input(const JsonView& view, const std::vector<FusionNode>& earlier, std::vector<std::string>& names) {
  using Kind = FusionInput::Kind;
  if (view.is_number()) return {.kind = Kind::number, .value = view.number({.least = -1e30, .most = 1e30})};
  const std::string text = view.string();
  if (text == "constant") return {.kind = Kind::constant};
  if (text == "scalar") return {.kind = Kind::scalar};
  if (text == "vector") return {.kind = Kind::vector};
  for (size_t i = 0; i < earlier.size(); ++i) {
    if (earlier[i].id == text) return {.kind = Kind::node, .index = i};
  }
  if (text.empty()) view.fail("constant, scalar, vector, a number, an earlier node, or the name of a tensor");
  const auto found = std::find(names.begin(), names.end(), text);
  const auto index = static_cast<size_t>(found - names.begin());
  if (found == names.end()) names.push_back(text);
  return {.kind = Kind::tensor, .index = index};
}

bool reads_a_node(const FusionNode& node) {
  return std::any_of(node.inputs.begin(), node.inputs.end(),
                     [](const FusionInput& input) { return input.kind == FusionInput::Kind::node; });
}

// "Conv", "com.microsoft.Gelu". A domain that we list no operator of may have any.
std::string read_operation(const JsonView& view) {
  const std::string name = view.string();
  const size_t dot = name.rfind('.');
  const OnnxNode node{.operation = dot == std::string::npos ? name : name.substr(dot + 1),
                      .domain = dot == std::string::npos ? "" : name.substr(0, dot)};
  if (find_onnx_operator(node) != nullptr && operation_text(node) == name) return name;
  bool is_listed = node.domain == "ai.onnx";  // written without it
  std::vector<std::string> known;
  for (const OnnxOperator& own : all_onnx_operators()) {
    is_listed = is_listed || own.domain == node.domain;
    known.push_back(operation_text({.operation = std::string(own.name), .domain = std::string(own.domain)}));
  }
  if (is_listed) view.fail("the name of an ONNX operator", nearest_name(name, known).value_or(""));
  return name;
}

// One, or a list of them.
std::vector<std::string> read_operations(const JsonView& view) {
  if (!view.is(Json::Kind::array)) return {read_operation(view)};
  std::vector<std::string> operations;
  for (const JsonView& own : view.items()) {
    if (operations.size() == most_operations) own.fail(fmt::format("at most {} operators", most_operations));
    operations.push_back(read_operation(own));
  }
  if (operations.empty()) view.fail("the name of at least one operator");
  return operations;
}

FusionNode read_node(const JsonView& view, const std::vector<FusionNode>& earlier, std::vector<std::string>& names) {
  view.allow_only({"id", "op", "inputs", "where", "optional", "stays"});
  FusionNode node{.id = view.at("id").string()};
  for (const FusionNode& other : earlier) {
    if (other.id == node.id) view.at("id").fail("a name that no other node of the pattern has");
  }
  node.operations = read_operations(view.at("op"));
  if (const std::optional<JsonView> inputs = view.find("inputs")) {
    for (const JsonView& input : inputs->items()) node.inputs.push_back(read_input(input, earlier, names));
  }
  if (node.inputs.size() > most_pattern_nodes) view.fail(fmt::format("at most {} inputs", most_pattern_nodes));
  if (!earlier.empty() && !reads_a_node(node)) view.fail("an input that is an earlier node of the pattern");
  if (const std::optional<JsonView> where = view.find("where")) node.condition = read_condition(*where);
  if (const std::optional<JsonView> stays = view.find("stays")) node.stays = stays->boolean();
  return node;
}

EdgeActivation read_activation(const JsonView& view) {
  const std::string name = view.string();
  const auto* found = std::find(std::begin(activation_kinds), std::end(activation_kinds), name);
  if (found == std::end(activation_kinds)) view.fail(fmt::format("one of {}", fmt::join(activation_kinds, ", ")));
  return static_cast<EdgeActivation>(found - std::begin(activation_kinds));
}

WrittenRule read_rule(const JsonView& view) {
  view.allow_only({"name", "source", "nodes", "kernel", "sizes_of", "activation", "adds"});
  WrittenRule written{.rule = {.name = view.at("name").string(), .source = view.at("source").string()}};
  FusionRule& rule = written.rule;
  const JsonView nodes = view.at("nodes");
  std::vector<std::string> tensor_names;
  for (const JsonView& own : nodes.items()) {
    if (rule.nodes.size() == most_pattern_nodes) own.fail(fmt::format("at most {} nodes", most_pattern_nodes));
    rule.nodes.push_back(read_node(own, rule.nodes, tensor_names));
    const std::optional<JsonView> optional = own.find("optional");
    written.optional.push_back(optional && optional->boolean());
  }
  rule.tensors = tensor_names.size();
  if (rule.nodes.empty()) nodes.fail("at least one node");
  if (written.optional.front())
    nodes.items().front().at("optional").fail("false, because the first node of a pattern cannot be optional");
  if (rule.nodes.front().stays)
    nodes.items().front().at("stays").fail("false, because the first node of a pattern is always fused");
  if (static_cast<size_t>(std::count(written.optional.begin(), written.optional.end(), true)) > most_optional)
    nodes.fail(fmt::format("at most {} optional nodes", most_optional));
  const JsonView kernel = view.at("kernel");
  if (kernel.string() != "nothing") {
    rule.kernel = edge_kind_from_name(kernel.string());
    std::vector<std::string> kinds = edge_kind_names();
    kinds.emplace_back("nothing");
    if (!rule.kernel)
      kernel.fail(fmt::format("one of {}", fmt::join(kinds, ", ")), nearest_name(kernel.string(), kinds).value_or(""));
  }
  if (const std::optional<JsonView> of = view.find("sizes_of")) {
    rule.sizes_of = node_index(*of, rule.nodes);
    if (written.optional[rule.sizes_of]) of->fail("a node that is not optional");
  }
  if (const std::optional<JsonView> own = view.find("activation")) rule.activation = read_activation(*own);
  if (const std::optional<JsonView> adds = view.find("adds")) written.adds = node_index(*adds, rule.nodes);
  return written;
}

// Of ai.onnx: DequantizeLinear and QuantizeLinear stand around no others.
std::vector<std::string> read_onnx_operations(const JsonView& view) {
  std::vector<std::string> operations = read_operations(view);
  for (const std::string& own : operations) {
    if (own.find('.') != std::string::npos) view.fail("operators of ONNX itself, without a domain");
  }
  return operations;
}

QuantizedRule read_quantized_rule(const JsonView& view) {
  view.allow_only({"name", "source", "op", "activations", "inputs", "needs_quantize", "same_scale"});
  QuantizedRule rule{.name = view.at("name").string(),
                     .source = view.at("source").string(),
                     .operations = read_onnx_operations(view.at("op"))};
  if (const std::optional<JsonView> activations = view.find("activations"))
    rule.activations = read_onnx_operations(*activations);
  if (const std::optional<JsonView> inputs = view.find("inputs"))
    rule.inputs = static_cast<size_t>(inputs->integer({.least = 1, .most = most_pattern_nodes}));
  if (const std::optional<JsonView> needs = view.find("needs_quantize")) rule.needs_quantize = needs->boolean();
  if (const std::optional<JsonView> same = view.find("same_scale")) rule.same_scale = same->boolean();
  return rule;
}

// The rule without the nodes in `missing`: what read one of them reads the node that it read.
FusionRule without(const WrittenRule& written, const std::vector<bool>& missing) {
  const std::vector<FusionNode>& all = written.rule.nodes;
  std::vector<size_t> place(all.size());  // of each node, or of what stands for it
  FusionRule rule = written.rule;
  rule.nodes.clear();
  for (size_t i = 0; i < all.size(); ++i) {
    if (missing[i]) {
      for (const FusionInput& input : all[i].inputs) {
        if (input.kind != FusionInput::Kind::node) continue;
        place[i] = place[input.index];
        break;
      }
      continue;
    }
    FusionNode node = all[i];
    for (FusionInput& input : node.inputs) {
      if (input.kind == FusionInput::Kind::node) input.index = place[input.index];
    }
    place[i] = rule.nodes.size();
    rule.nodes.push_back(std::move(node));
  }
  rule.sizes_of = place[written.rule.sizes_of];
  rule.accumulates = written.adds && !missing[*written.adds];
  return rule;
}

// Every way to leave optional nodes out, fewest first.
void write_out(const WrittenRule& written, std::vector<FusionRule>& rules) {
  std::vector<size_t> optional;
  for (size_t i = 0; i < written.optional.size(); ++i) {
    if (written.optional[i]) optional.push_back(i);
  }
  const size_t ways = size_t{1} << optional.size();
  for (size_t left_out = 0; left_out <= optional.size(); ++left_out) {
    for (size_t way = 0; way < ways; ++way) {
      std::vector<bool> missing(written.optional.size(), false);
      size_t count = 0;
      for (size_t i = 0; i < optional.size(); ++i) {
        if ((way >> i & 1) == 0) continue;
        missing[optional[i]] = true;
        ++count;
      }
      if (count == left_out) rules.push_back(without(written, missing));
    }
  }
}

// "Conv", "com.microsoft.Gelu"
bool is_operation(const OnnxNode& node, std::string_view name) {
  if (node.domain.empty()) return node.operation == name;
  return name.size() == node.domain.size() + 1 + node.operation.size() && name.starts_with(node.domain) &&
         name.ends_with(node.operation);
}

bool is_one_of(const OnnxNode& node, const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) { return is_operation(node, name); });
}

bool may_be_swapped(const OnnxNode& node) {
  return node.domain.empty() && (node.operation == "Add" || node.operation == "Mul");
}

bool has_value(const OnnxTensor& tensor, double wanted) {
  if (!tensor.values || tensor.elements() != 1) return false;
  const double value = !tensor.values->reals.empty()      ? tensor.values->reals.front()
                       : !tensor.values->integers.empty() ? static_cast<double>(tensor.values->integers.front())
                                                          : NAN;
  return std::abs(value - wanted) <= 1e-3 * std::abs(wanted);
}

bool is_vector(const OnnxTensor& tensor) {
  return std::count_if(tensor.dims.begin(), tensor.dims.end(), [](int64_t side) { return side != 1; }) <= 1;
}

bool along_last_axis(const OnnxNodeView& view) {
  const auto rank = static_cast<int64_t>(view.rank(0));
  if (view.has_attribute("axis")) return view.attribute("axis", -1) == -1 || view.attribute("axis", -1) == rank - 1;
  const OnnxNodeView::List axes = view.list("axes", 1);
  return axes.values && axes.values->size() == 1 && (axes.values->front() == -1 || axes.values->front() == rank - 1);
}

bool holds(FusionCondition condition, const OnnxNodeView& view) {
  switch (condition) {
    case FusionCondition::none:
      return true;
    case FusionCondition::last_axis:
      return along_last_axis(view);
    case FusionCondition::swaps_last_axes:
      return swaps_last_axes(transpose_order(view));
    case FusionCondition::moves_first_axis:
      return moves_first_axis(transpose_order(view));
    case FusionCondition::same_shapes: {
      if (!view.wants(0)) return false;
      const OnnxDims& output = view.graph().tensor(view.node().outputs[0]).dims;
      for (size_t i = 0; i < view.inputs(); ++i) {
        if (view.dims(i) != output) return false;
      }
      return true;
    }
  }
  return false;
}

}  // namespace

FusionRules parse_fusion_rules(std::string_view text, const std::string& source) {
  const Json document = parse_json(text, source);
  const JsonView view(document, source);
  view.allow_only({"format", "version", "runtime", "about", "quantized", "rules"});
  if (view.at("format").string() != rules_format) view.at("format").fail(rules_format);
  if (view.at("version").integer({.least = 1, .most = 1'000'000}) != 1)
    view.at("version").fail("1; a newer file needs a newer foretoken");
  FusionRules result{.runtime = view.at("runtime").string(), .about = view.at("about").string()};
  if (const std::optional<JsonView> quantized = view.find("quantized")) {
    for (const JsonView& own : quantized->items()) {
      if (result.quantized.size() == most_rules) own.fail(fmt::format("at most {} rules", most_rules));
      result.quantized.push_back(read_quantized_rule(own));
    }
  }
  for (const JsonView& own : view.at("rules").items()) {
    write_out(read_rule(own), result.rules);
    if (result.rules.size() > most_rules) own.fail(fmt::format("at most {} rules", most_rules));
  }
  return result;
}

FusionRules read_fusion_rules(const std::filesystem::path& path) {
  constexpr size_t most_bytes = size_t{1} << 20;
  return parse_fusion_rules(read_file(path, most_bytes), path.string());
}

// A pattern that is laid onto a graph node by node.
struct FusionMatcher::Search {
  const FusionRule& rule;
  const std::vector<bool>& taken;
  std::vector<int64_t> nodes = {};    // of the graph, so far
  std::vector<int64_t> tensors = {};  // by the names of the pattern; -1: not met yet
  size_t steps_left = 2000;           // a pattern that needs more of them is given up
};

FusionMatcher::FusionMatcher(const OnnxGraph& graph, const FusionRules& rules)
    : graph_(graph), rules_(rules), readers_(tensor_readers(graph)), is_output_(graph.tensors.size(), false) {
  for (const int64_t output : graph.outputs) is_output_[static_cast<size_t>(output)] = true;
}

std::optional<FusionMatch> FusionMatcher::match(int64_t first, const std::vector<bool>& taken) const {
  for (const FusionRule& rule : rules_.rules) {
    if (!is_one_of(graph_.nodes[static_cast<size_t>(first)], rule.nodes.front().operations)) continue;
    Search search{.rule = rule, .taken = taken};
    search.tensors.assign(rule.tensors, -1);
    if (fits(search, rule.nodes.front(), first) && extend(search))
      return FusionMatch{.rule = &rule, .nodes = search.nodes};
  }
  return std::nullopt;
}

// Lays the rest of the pattern; `search` is as it was where that fails.
bool FusionMatcher::extend(Search& search) const {
  if (search.nodes.size() == search.rule.nodes.size()) return is_closed(search);
  const FusionNode& wanted = search.rule.nodes[search.nodes.size()];
  size_t read = 0;
  for (const FusionInput& input : wanted.inputs) {
    if (input.kind == FusionInput::Kind::node) read = input.index;
  }
  std::vector<int64_t> readers;
  for (const int64_t made : graph_.nodes[static_cast<size_t>(search.nodes[read])].outputs) {
    if (made < 0) continue;
    const std::vector<int64_t>& own = readers_[static_cast<size_t>(made)];
    for (const int64_t reader : own) {  // a node that reads a tensor twice is one reader
      if (std::find(readers.begin(), readers.end(), reader) == readers.end()) readers.push_back(reader);
    }
    if (readers.size() > search.rule.nodes.size()) return false;  // some reader is outside
  }
  for (const int64_t reader : readers) {
    if (search.steps_left == 0) return false;
    --search.steps_left;
    const std::vector<int64_t> tensors = search.tensors;
    if (!fits(search, wanted, reader)) continue;
    if (extend(search)) return true;
    search.nodes.pop_back();
    search.tensors = tensors;
  }
  return false;
}

// Whether a node of the graph can be the next of the pattern; if so, it is.
bool FusionMatcher::fits(Search& search, const FusionNode& wanted, int64_t index) const {
  const OnnxNode& node = graph_.nodes[static_cast<size_t>(index)];
  const bool free =
      !node.is_folded && graph_.is_counted(node) && (wanted.stays || !search.taken[static_cast<size_t>(index)]);
  const bool is_new = std::find(search.nodes.begin(), search.nodes.end(), index) == search.nodes.end();
  if (!free || !is_new || !is_one_of(node, wanted.operations) || node.outputs.empty()) return false;
  if (!search.nodes.empty() && node.region != graph_.nodes[static_cast<size_t>(search.nodes.front())].region)
    return false;
  const OnnxNodeView view(graph_, node);
  if (wanted.inputs.size() > view.inputs() || !holds(wanted.condition, view)) return false;
  std::vector<int64_t> tensors;
  const auto accepts = [&](const FusionInput& input, int64_t tensor) {
    if (tensor < 0) return false;
    const OnnxTensor& own = graph_.tensor(tensor);
    switch (input.kind) {
      case FusionInput::Kind::node: {
        const std::vector<int64_t>& made = graph_.nodes[static_cast<size_t>(search.nodes[input.index])].outputs;
        return std::find(made.begin(), made.end(), tensor) != made.end();
      }
      case FusionInput::Kind::tensor:
        if (tensors[input.index] >= 0) return tensors[input.index] == tensor;
        tensors[input.index] = tensor;
        return true;
      case FusionInput::Kind::constant:
        return own.is_constant;
      case FusionInput::Kind::scalar:
        return own.is_constant && own.elements() == 1;
      case FusionInput::Kind::vector:
        return own.is_constant && is_vector(own);
      case FusionInput::Kind::number:
        return own.is_constant && has_value(own, input.value);
    }
    return false;
  };
  const auto accepts_all = [&](const std::vector<int64_t>& order) {
    tensors = search.tensors;
    for (size_t i = 0; i < wanted.inputs.size(); ++i) {
      if (!accepts(wanted.inputs[i], order[i])) return false;
    }
    return true;
  };
  std::vector<int64_t> order = node.inputs;
  bool accepted = accepts_all(order);
  if (!accepted && may_be_swapped(node) && order.size() == 2) {
    std::swap(order[0], order[1]);
    accepted = accepts_all(order);
  }
  if (!accepted) return false;
  search.tensors = std::move(tensors);
  search.nodes.push_back(index);
  return true;
}

// What is made within is read within, but for the last node's and what stays.
bool FusionMatcher::is_closed(const Search& search) const {
  for (size_t i = 0; i < search.nodes.size(); ++i) {
    if (search.rule.nodes[i].stays || i + 1 == search.nodes.size()) continue;
    for (const int64_t output : graph_.nodes[static_cast<size_t>(search.nodes[i])].outputs) {
      if (output < 0) continue;
      if (is_output_[static_cast<size_t>(output)]) return false;
      for (const int64_t reader : readers_[static_cast<size_t>(output)]) {
        if (std::find(search.nodes.begin(), search.nodes.end(), reader) == search.nodes.end()) return false;
      }
    }
  }
  return true;
}

}  // namespace foretoken
