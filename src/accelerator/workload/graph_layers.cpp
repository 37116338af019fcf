#include "accelerator/workload/graph_layers.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "model/onnx/work.h"

namespace foretoken {
namespace {

// What an array applies to a result on its way out, or what folds into the weights.
bool is_applied_on_the_way(const OnnxNode& node) {
  constexpr std::array<std::string_view, 12> names = {"Relu",        "Clip",      "LeakyRelu", "Sigmoid",
                                                      "HardSigmoid", "HardSwish", "Tanh",      "Elu",
                                                      "PRelu",       "Identity",  "Dropout",   "BatchNormalization"};
  return std::find(names.begin(), names.end(), node.operation) != names.end();
}

class LayersOfGraph {
 public:
  explicit LayersOfGraph(const OnnxGraph& graph) : graph_(graph), readers_(tensor_readers(graph)) {}

  std::vector<NetworkLayer> layers() && {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const OnnxNode& node = graph_.nodes[i];
      const size_t before = layers_.size();
      const bool follows = reads_previous_layer_alone(node);
      for (const Operator& own : onnx_operators(graph_, node)) add(own);
      if (layers_.size() == before) continue;
      layers_[before].from_previous = layers_.size() == before + 1 && (follows || weighs_previous_scores(node));
      last_node_ = static_cast<int64_t>(i);
    }
    return std::move(layers_);
  }

 private:
  void add(const Operator& own) {
    if (const auto* product = std::get_if<GemmShape>(&own.shape)) {
      add(own, GemmSize{.m = product->m, .n = product->n, .k = product->k, .batch = product->batch});
    } else if (const auto* window = std::get_if<ConvShape>(&own.shape)) {
      layers_.push_back({.name = own.name, .work = *window, .count = own.count});
    } else if (const auto* attention = std::get_if<AttentionShape>(&own.shape)) {
      const int64_t heads = attention->batch * attention->heads;
      const int64_t values = attention->value_dim > 0 ? attention->value_dim : attention->head_dim;
      add(own, {.m = attention->q_len, .n = attention->kv_len, .k = attention->head_dim, .batch = heads});
      add(own, {.m = attention->q_len, .n = values, .k = attention->kv_len, .batch = heads});
      layers_.back().from_previous = true;
    }
  }

  void add(const Operator& own, const GemmSize& size) {
    layers_.push_back({.name = own.name, .work = size, .count = own.count});
  }

  // The tensor that a node computes with, where it is only one.
  std::optional<int64_t> only_input(const OnnxNode& node) const {
    std::optional<int64_t> found;
    for (const int64_t input : node.inputs) {
      if (input < 0 || graph_.tensor(input).is_constant) continue;
      if (found) return std::nullopt;
      found = input;
    }
    return found;
  }

  bool reads_previous_layer_alone(const OnnxNode& node) const {
    std::optional<int64_t> tensor = only_input(node);
    while (tensor) {
      const int64_t maker = graph_.tensor(*tensor).producer;
      if (maker < 0 || readers_[static_cast<size_t>(*tensor)].size() != 1) return false;
      if (maker == last_node_) return true;
      const OnnxNode& between = graph_.nodes[static_cast<size_t>(maker)];
      if (!is_applied_on_the_way(between)) return false;
      tensor = only_input(between);
    }
    return false;
  }

  // What stands between the two products of an attention: a softmax with its scale and mask.
  static bool belongs_to_softmax(const OnnxNode& node) {
    constexpr std::array<std::string_view, 9> names = {"Softmax", "Mul",      "Div",     "Add", "Where",
                                                       "Cast",    "Identity", "Dropout", "Sub"};
    return std::find(names.begin(), names.end(), node.operation) != names.end();
  }

  // Whether the node multiplies the softmax of what the last layer puts out by values.
  bool weighs_previous_scores(const OnnxNode& node) const {
    if (node.operation != "MatMul" || node.inputs.empty()) return false;
    int64_t tensor = node.inputs.front();
    bool has_softmax = false;
    while (tensor >= 0) {
      const int64_t maker = graph_.tensor(tensor).producer;
      if (maker < 0 || readers_[static_cast<size_t>(tensor)].size() != 1) return false;
      if (maker == last_node_) return has_softmax;
      const OnnxNode& between = graph_.nodes[static_cast<size_t>(maker)];
      if (!belongs_to_softmax(between)) return false;
      has_softmax = has_softmax || between.operation == "Softmax";
      tensor = made_by_operator(between);
    }
    return false;
  }

  // The input that is computed from others, where it is only one; -1 else.
  int64_t made_by_operator(const OnnxNode& node) const {
    int64_t found = -1;
    for (const int64_t input : node.inputs) {
      if (input < 0 || graph_.tensor(input).is_constant || graph_.tensor(input).producer < 0) continue;
      if (found >= 0) return -1;
      found = input;
    }
    return found;
  }

  const OnnxGraph& graph_;
  std::vector<std::vector<int64_t>> readers_;
  std::vector<NetworkLayer> layers_;
  int64_t last_node_ = -1;  // that the last layer stands for
};

}  // namespace

std::vector<Operator> graph_operators(const OnnxGraph& graph) {
  std::vector<Operator> all;
  for (const OnnxNode& node : graph.nodes) {
    for (Operator& own : onnx_operators(graph, node)) all.push_back(std::move(own));
  }
  return all;
}

std::vector<NetworkLayer> graph_layers(const OnnxGraph& graph) {
  std::vector<NetworkLayer> layers = LayersOfGraph(graph).layers();
  if (layers.empty()) {
    throw InputError({.source = graph.source, .path = "graph", .expected = "at least one convolution or product"});
  }
  return layers;
}

}  // namespace foretoken
