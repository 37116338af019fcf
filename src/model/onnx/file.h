// An ONNX file as it stands: nodes that name their tensors, with functions and subgraphs apart. graph.h makes one graph
// of it. (onnx.proto, IR version 3 to 10.)
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "model/onnx/tensor.h"

namespace foretoken {

struct OnnxDimension {
  int64_t size = -1;   // -1 = not said
  std::string symbol;  // what the exporter calls it: "batch"
};

// A graph's input or output, or what the exporter knew of a tensor between.
struct OnnxValueInfo {
  std::string name;
  OnnxType type = OnnxType::undefined;
  bool has_shape = false;
  std::vector<OnnxDimension> dims;
};

// An initializer, or a tensor inside an attribute. Its content is kept where it is small.
struct OnnxTensorData {
  std::string name;
  OnnxType type = OnnxType::undefined;
  OnnxDims dims;
  std::optional<OnnxValues> values;
};

struct OnnxBody;

struct OnnxAttribute {
  std::string name;
  std::string reference;  // inside a function: the attribute of the call that belongs here
  // Bodies are shared: every call of a function has the same.
  std::variant<std::monostate, int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
               std::vector<std::string>, OnnxTensorData, std::shared_ptr<const OnnxBody>>
      value;
};

struct OnnxFileNode {
  std::string name;
  std::string operation;
  std::string domain;                // empty: ai.onnx
  std::vector<std::string> inputs;   // empty text: left out
  std::vector<std::string> outputs;  // empty text: not wanted
  std::vector<OnnxAttribute> attributes;
};

// A graph: the model's own, or that of a branch or loop.
struct OnnxBody {
  std::string name;
  std::vector<OnnxFileNode> nodes;
  std::vector<OnnxTensorData> initializers;
  std::vector<OnnxValueInfo> inputs;
  std::vector<OnnxValueInfo> outputs;
  std::vector<OnnxValueInfo> between;
};

struct OnnxFunction {
  std::string domain;
  std::string name;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<OnnxAttribute> defaults;
  std::vector<OnnxFileNode> nodes;
};

struct OnnxFile {
  std::string source;    // for messages
  std::string producer;  // "pytorch 1.13.0"
  std::vector<std::pair<std::string, int64_t>> opsets;
  OnnxBody body;
  std::vector<OnnxFunction> functions;
};

struct OnnxLimits {
  size_t max_bytes = size_t{1} << 31;  // what protocol buffers allow
  size_t max_nodes = 200'000;          // with functions and subgraphs in place
  size_t max_tensors = 1'000'000;
  size_t max_names = 4'000'000;  // inputs, outputs, attributes and their numbers
  size_t max_bodies = 2'000;     // of control flow
  int max_nesting = 16;          // graphs within graphs, functions within functions
};

}  // namespace foretoken
