// A node with its inputs and attributes, as the rules of operators read them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/onnx/graph.h"

namespace foretoken {

// Inputs that are left out have rank 0 and no values. The graph must outlive the view.
class OnnxNodeView {
 public:
  OnnxNodeView(const OnnxGraph& graph, const OnnxNode& node) : graph_(graph), node_(node) {}

  const OnnxNode& node() const { return node_; }
  const OnnxGraph& graph() const { return graph_; }
  int64_t opset() const { return graph_.opset(node_.domain); }

  size_t inputs() const { return node_.inputs.size(); }
  bool has(size_t input) const { return input < node_.inputs.size() && node_.inputs[input] >= 0; }
  const OnnxTensor& input(size_t input) const;
  const OnnxDims& dims(size_t index) const { return input(index).dims; }
  OnnxType type(size_t index) const { return input(index).type; }
  size_t rank(size_t index) const { return dims(index).size(); }
  const OnnxValues* values(size_t index) const;
  std::optional<std::vector<int64_t>> integers(size_t index) const;  // values of a tensor of integers
  std::optional<int64_t> integer(size_t index) const;                // of one element

  // Attributes; what the operator takes where the file is silent. InputError for one of another kind.
  bool has_attribute(std::string_view name) const { return node_.attribute(name) != nullptr; }
  int64_t attribute(std::string_view name, int64_t otherwise) const;
  std::string text_attribute(std::string_view name, std::string_view otherwise) const;
  std::vector<int64_t> list_attribute(std::string_view name, std::vector<int64_t> otherwise = {}) const;
  OnnxType type_attribute(std::string_view name, OnnxType otherwise) const;

  // A list that was an attribute in older opsets and is an input since; nothing where its values are not known.
  // `given` says whether there is one at all.
  struct List {
    bool given = false;
    std::optional<std::vector<int64_t>> values;
  };
  List list(std::string_view attribute_name, size_t input_index) const;

  // Axis counted from the back if negative. InputError outside of `rank`.
  size_t axis(int64_t axis, size_t rank) const;

  size_t outputs() const { return node_.outputs.size(); }
  bool wants(size_t output) const { return output < node_.outputs.size() && node_.outputs[output] >= 0; }

  [[noreturn]] void fail(std::string value, std::string expected) const;

 private:
  const OnnxGraph& graph_;
  const OnnxNode& node_;
};

std::string operation_text(const OnnxNode& node);  // "Conv", "com.microsoft.Gelu"
std::string dims_text(const OnnxDims& dims);       // "1x3x224x224"; "scalar"

}  // namespace foretoken
