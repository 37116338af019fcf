// From names to edges: every tensor gets one number, functions are inlined, bodies of control flow are put between the
// nodes that begin and end them, and nodes are brought into an order in which they can run.
#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#include "base/error.h"
#include "model/onnx/bindings.h"
#include "model/onnx/graph.h"
#include "model/onnx/node_order.h"

namespace foretoken {
namespace {

// The graph's own name, or the file's where an exporter gave it the one that it gives to all.
std::string name_of(const OnnxFile& file) {
  constexpr std::array<std::string_view, 5> usual = {"", "torch_jit", "torch-jit-export", "main_graph", "tf2onnx"};
  if (std::find(usual.begin(), usual.end(), file.body.name) == usual.end()) return file.body.name;
  const std::string stem = std::filesystem::path(file.source).stem().string();
  return stem.empty() ? file.body.name : stem;
}

class OnnxLinker {
 public:
  OnnxLinker(const OnnxFile& file, const OnnxOptions& options) : file_(file), options_(options) {
    graph_.source = file.source;
    graph_.name = name_of(file);
    graph_.producer = file.producer;
    for (const auto& [domain, version] : file.opsets) graph_.opsets[domain] = version;
    for (const OnnxFunction& function : file.functions) functions_[{function.domain, function.name}] = &function;
  }

  OnnxGraph link() {
    check_opset();
    Scope scope;
    add_inputs(scope);
    add_body(file_.body, scope, -1, "", 0);
    for (const OnnxValueInfo& output : file_.body.outputs) {
      graph_.outputs.push_back(resolve(scope, output.name, "the graph's outputs"));
    }
    put_in_order(graph_, file_.source);
    return std::move(graph_);
  }

 private:
  // Names of tensors in one graph or function, and in the graphs around it.
  struct Scope {
    std::unordered_map<std::string, int64_t> tensors;
    const Scope* outer = nullptr;
  };

  [[noreturn]] void fail(std::string path, std::string value, std::string expected) const {
    throw InputError(
        {.source = file_.source, .path = std::move(path), .value = std::move(value), .expected = std::move(expected)});
  }

  void check_opset() const {
    constexpr int64_t oldest = 7, newest = 25;
    const int64_t opset = graph_.opset();
    if (opset == 0 || (opset >= oldest && opset <= newest)) return;
    fail("opset_import", fmt::format("ai.onnx {}", opset), fmt::format("an opset from {} to {}", oldest, newest));
  }

  // Names and attributes are repeated for every call of a function: a small file must not grow without bound.
  void charge(size_t amount) {
    charged_ += amount;
    constexpr size_t most = size_t{256} << 20;
    if (charged_ > most) fail("graph", "functions within functions", "less than 256 MB of names and attributes");
  }

  int64_t add_tensor(OnnxTensor tensor) {
    charge(tensor.name.size());
    if (graph_.tensors.size() >= options_.limits.max_tensors) {
      fail("graph", fmt::format("more than {} tensors", options_.limits.max_tensors), "a smaller graph");
    }
    graph_.tensors.push_back(std::move(tensor));
    return static_cast<int64_t>(graph_.tensors.size()) - 1;
  }

  void name_tensor(Scope& scope, const std::string& name, int64_t tensor, const std::string& where) const {
    if (scope.tensors.emplace(name, tensor).second) return;
    fail(where, fmt::format("a second tensor called '{}'", printable(name)), "each tensor made once");
  }

  int64_t resolve(const Scope& scope, const std::string& name, const std::string& where) const {
    for (const Scope* around = &scope; around != nullptr; around = around->outer) {
      const auto found = around->tensors.find(name);
      if (found != around->tensors.end()) return found->second;
    }
    fail(where, fmt::format("tensor '{}'", printable(name)), "a tensor that a node, an input or an initializer gives");
  }

  // Initializers may be listed among the inputs too (IR version 3): they are not inputs then.
  void add_inputs(Scope& scope) {
    std::set<std::string> stored;
    for (const OnnxTensorData& initializer : file_.body.initializers) stored.insert(initializer.name);
    std::vector<OnnxValueInfo> inputs;
    for (const OnnxValueInfo& input : file_.body.inputs) {
      if (!stored.contains(input.name)) inputs.push_back(input);
    }
    std::vector<std::string> assumed;
    const std::vector<OnnxDims> shapes = bound_shapes(inputs, options_, file_.source, assumed);
    for (const std::string& symbol : assumed) {
      graph_.notes.push_back(
          fmt::format("{} is taken as 1; {{bind}} {}=SIZE sets it", printable(symbol), printable(symbol)));
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      const int64_t tensor = add_tensor(
          {.name = inputs[i].name, .type = inputs[i].type, .dims = shapes[i], .origin = OnnxShapeOrigin::given});
      name_tensor(scope, inputs[i].name, tensor, "the graph's inputs");
      graph_.inputs.push_back(tensor);
    }
  }

  void add_initializers(const OnnxBody& body, Scope& scope, const std::string& prefix) {
    for (const OnnxTensorData& own : body.initializers) {
      const int64_t tensor = add_tensor({.name = prefix + own.name,
                                         .type = own.type,
                                         .dims = own.dims,
                                         .origin = OnnxShapeOrigin::given,
                                         .is_constant = true,
                                         .values = own.values});
      name_tensor(scope, own.name, tensor, "the graph's initializers");
    }
  }

  // What the exporter says of a tensor is kept where all its sizes are numbers, or bound.
  void declare(const OnnxValueInfo& info, const Scope& scope) {
    const auto found = scope.tensors.find(info.name);
    if (found == scope.tensors.end() || !info.has_shape) return;
    OnnxTensor& tensor = graph_.tensors[static_cast<size_t>(found->second)];
    if (tensor.origin != OnnxShapeOrigin::unknown) return;
    OnnxDims dims;
    for (const OnnxDimension& dimension : info.dims) {
      const auto bound = options_.bind.find(dimension.symbol);
      const int64_t size = dimension.size >= 0 ? dimension.size : bound != options_.bind.end() ? bound->second : -1;
      if (size < 0) return;
      dims.push_back(size);
    }
    if (!onnx_elements(dims)) return;
    tensor.type = info.type;
    tensor.dims = std::move(dims);
    tensor.origin = OnnxShapeOrigin::declared;
  }

  void add_body(const OnnxBody& body, Scope& scope, int64_t region, const std::string& prefix, int depth) {
    add_initializers(body, scope, prefix);
    name_outputs(body.nodes, scope, prefix);
    for (const OnnxValueInfo& info : body.between) declare(info, scope);
    for (const OnnxValueInfo& info : body.outputs) declare(info, scope);
    for (const OnnxFileNode& node : body.nodes) add_node(node, scope, region, prefix, depth, nullptr);
  }

  // Before any node is linked: a file may list them in any order.
  void name_outputs(const std::vector<OnnxFileNode>& nodes, Scope& scope, const std::string& prefix) {
    for (const OnnxFileNode& node : nodes) {
      for (const std::string& output : node.outputs) {
        if (output.empty()) continue;
        // The output of an inlined function is already the tensor of the call.
        if (scope.tensors.contains(output) && formal_outputs_.erase(scope.tensors.at(output)) == 1) continue;
        name_tensor(scope, output, add_tensor({.name = prefix + output}),
                    fmt::format("node {}", printable(prefix + node.name)));
      }
    }
  }

  std::string node_name(const OnnxFileNode& node, const std::string& prefix) {
    std::string name =
        prefix + (node.name.empty() ? fmt::format("{}_{}", node.operation, graph_.nodes.size()) : node.name);
    charge(name.size());
    if (!names_.insert(name).second) {
      name += fmt::format("#{}", graph_.nodes.size());
      names_.insert(name);
    }
    return name;
  }

  int64_t push_node(OnnxNode node) {
    graph_.nodes.push_back(std::move(node));
    return static_cast<int64_t>(graph_.nodes.size()) - 1;
  }

  // Attributes of a function's node that stand for attributes of its call.
  static std::vector<OnnxAttribute> attributes_of(const OnnxFileNode& node, const std::vector<OnnxAttribute>* call) {
    std::vector<OnnxAttribute> result;
    for (const OnnxAttribute& own : node.attributes) {
      if (own.reference.empty()) {
        result.push_back(own);
        continue;
      }
      if (call == nullptr) continue;
      for (const OnnxAttribute& given : *call) {
        if (given.name == own.reference) result.push_back({.name = own.name, .value = given.value});
      }
    }
    return result;
  }

  void add_node(const OnnxFileNode& node, Scope& scope, int64_t region, const std::string& prefix, int depth,
                const std::vector<OnnxAttribute>* call) {
    if (++added_ > options_.limits.max_nodes) {
      fail("graph", fmt::format("more than {} nodes, functions inlined", options_.limits.max_nodes), "a smaller graph");
    }
    OnnxNode linked{.name = node_name(node, prefix),
                    .operation = node.operation,
                    .domain = node.domain,
                    .attributes = attributes_of(node, call),
                    .region = region};
    const std::string where = fmt::format("node {} ({})", printable(linked.name), printable(node.operation));
    for (const std::string& input : node.inputs) {
      linked.inputs.push_back(input.empty() ? -1 : resolve(scope, input, where));
    }
    for (const std::string& output : node.outputs) {
      linked.outputs.push_back(output.empty() ? -1 : scope.tensors.at(output));
    }
    charge((node.inputs.size() + node.outputs.size()) * sizeof(int64_t));
    if (call != nullptr) charge(attribute_bytes(linked.attributes));
    const auto function = functions_.find({node.domain, node.operation});
    if (function != functions_.end()) {
      inline_function(*function->second, linked, depth);
    } else if (has_bodies(linked)) {
      add_control_flow(std::move(linked), scope, depth);
    } else {
      push_node(std::move(linked));
    }
  }

  static size_t attribute_bytes(const std::vector<OnnxAttribute>& attributes) {
    struct Size {
      size_t operator()(const std::string& text) const { return text.size(); }
      size_t operator()(const std::vector<int64_t>& list) const { return list.size() * sizeof(int64_t); }
      size_t operator()(const std::vector<double>& list) const { return list.size() * sizeof(double); }
      size_t operator()(const std::vector<std::string>& list) const {
        size_t sum = 0;
        for (const std::string& text : list) sum += sizeof(text) + text.size();
        return sum;
      }
      size_t operator()(const OnnxTensorData& tensor) const {
        if (!tensor.values) return 0;
        return (*this)(tensor.values->integers) + (*this)(tensor.values->reals);
      }
      size_t operator()(std::monostate /*none*/) const { return 0; }
      size_t operator()(int64_t /*one*/) const { return 0; }
      size_t operator()(double /*one*/) const { return 0; }
      size_t operator()(const std::shared_ptr<const OnnxBody>& /*shared*/) const { return 0; }
    };
    size_t sum = 0;
    for (const OnnxAttribute& own : attributes) sum += sizeof(own) + own.name.size() + std::visit(Size{}, own.value);
    return sum;
  }

  static bool has_bodies(const OnnxNode& node) {
    return std::any_of(node.attributes.begin(), node.attributes.end(), [](const OnnxAttribute& own) {
      return std::holds_alternative<std::shared_ptr<const OnnxBody>>(own.value);
    });
  }

  void check_depth(int depth, const std::string& name) const {
    if (depth < options_.limits.max_nesting) return;
    fail(fmt::format("node {}", printable(name)), "graphs or functions within each other",
         fmt::format("at most {} levels; does a function call itself?", options_.limits.max_nesting));
  }

  void inline_function(const OnnxFunction& function, const OnnxNode& call, int depth) {
    check_depth(depth, call.name);
    Scope scope;
    const std::string where = fmt::format("function {}", printable(function.name));
    for (size_t i = 0; i < function.inputs.size(); ++i) {
      const int64_t given = i < call.inputs.size() ? call.inputs[i] : -1;
      name_tensor(scope, function.inputs[i], given, where);  // -1: left out in the function's nodes too
    }
    for (size_t i = 0; i < function.outputs.size() && i < call.outputs.size(); ++i) {
      if (call.outputs[i] < 0) continue;
      const auto passed_on = scope.tensors.find(function.outputs[i]);
      if (passed_on != scope.tensors.end()) {  // an input handed through
        if (passed_on->second < 0) fail(where, "an output that the call leaves out", "an input to hand through");
        push_node({.name = fmt::format("{}/{}", call.name, function.outputs[i]),
                   .operation = "Identity",
                   .inputs = {passed_on->second},
                   .outputs = {call.outputs[i]},
                   .region = call.region});
        continue;
      }
      name_tensor(scope, function.outputs[i], call.outputs[i], where);
      formal_outputs_.insert(call.outputs[i]);
    }
    std::vector<OnnxAttribute> attributes = call.attributes;
    for (const OnnxAttribute& standard : function.defaults) {
      if (call.attribute(standard.name) == nullptr) attributes.push_back(standard);
    }
    const std::string prefix = call.name + "/";
    name_outputs(function.nodes, scope, prefix);
    for (const OnnxFileNode& node : function.nodes) {
      add_node(node, scope, call.region, prefix, depth + 1, &attributes);
    }
  }

  void add_control_flow(OnnxNode node, const Scope& outer, int depth) {
    check_depth(depth, node.name);
    OnnxNode begin{.name = node.name + "/begin",
                   .operation = node.operation,
                   .domain = node.domain,
                   .inputs = std::move(node.inputs),
                   .attributes = node.attributes,
                   .control = OnnxControl::begin,
                   .region = node.region};
    const int64_t begin_index = push_node(std::move(begin));
    node.inputs.clear();
    node.control = OnnxControl::end;
    std::vector<int64_t> regions;
    for (const OnnxAttribute& attribute : node.attributes) {
      const auto* body = std::get_if<std::shared_ptr<const OnnxBody>>(&attribute.value);
      if (body == nullptr) continue;
      if (graph_.regions.size() >= options_.limits.max_bodies) {
        fail("graph", fmt::format("more than {} bodies of control flow", options_.limits.max_bodies),
             "a smaller graph");
      }
      const auto region = static_cast<int64_t>(graph_.regions.size());
      graph_.regions.push_back({.begin = begin_index, .parent = node.region, .branch = attribute.name});
      regions.push_back(region);
      Scope scope{.outer = &outer};
      const std::string prefix = fmt::format("{}/{}/", node.name, attribute.name);
      for (const OnnxValueInfo& input : (*body)->inputs) {
        const int64_t tensor = add_tensor({.name = prefix + input.name, .type = input.type});
        name_tensor(scope, input.name, tensor, fmt::format("node {}", printable(node.name)));
        graph_.nodes[static_cast<size_t>(begin_index)].outputs.push_back(tensor);
      }
      add_body(**body, scope, region, prefix, depth + 1);
      for (const OnnxValueInfo& output : (*body)->outputs) {
        node.inputs.push_back(resolve(scope, output.name, fmt::format("node {}", printable(node.name))));
      }
    }
    const int64_t end_index = push_node(std::move(node));
    for (const int64_t region : regions) graph_.regions[static_cast<size_t>(region)].end = end_index;
  }

  const OnnxFile& file_;
  const OnnxOptions& options_;
  OnnxGraph graph_;
  std::map<std::pair<std::string, std::string>, const OnnxFunction*> functions_;
  std::set<std::string> names_;
  std::set<int64_t> formal_outputs_;  // of the functions being inlined, not yet made by a node
  size_t added_ = 0;                  // nodes, calls of functions among them
  size_t charged_ = 0;                // bytes
};

}  // namespace

OnnxGraph link_onnx(const OnnxFile& file, const OnnxOptions& options) {
  return OnnxLinker(file, options).link();
}

}  // namespace foretoken
