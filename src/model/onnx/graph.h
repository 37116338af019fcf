// A network as one flat graph: nodes in an order in which they can run, tensors with type and shape. Functions are
// inlined; the bodies of If, Loop and Scan stand between two nodes that begin and end them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/onnx/file.h"
#include "model/onnx/tensor.h"

namespace foretoken {

// How a shape came to be known.
enum class OnnxShapeOrigin : uint8_t {
  unknown,   // before inference
  given,     // stored with the tensor, or bound by the user
  inferred,  // by the rule of its operator
  declared,  // the exporter's word, where no rule says
  bounded,   // the most that a shape which depends on data can be
  assumed    // nobody says: that of the node's first input
};

struct OnnxTensor {
  std::string name;
  OnnxType type = OnnxType::undefined;
  OnnxDims dims;
  OnnxShapeOrigin origin = OnnxShapeOrigin::unknown;
  bool is_constant = false;          // known before any input arrives: weights, and what follows from shapes
  std::optional<OnnxValues> values;  // of small constants
  int64_t producer = -1;             // node; -1: an input of the graph, or stored
  int64_t same_storage = -1;         // a view: the tensor whose memory it is

  int64_t elements() const { return onnx_elements(dims).value_or(0); }
  double bytes() const { return static_cast<double>(elements()) * onnx_element_bytes(type); }
};

enum class OnnxControl : uint8_t { none, begin, end };

struct OnnxNode {
  std::string name;  // unique; made up where the file has none
  std::string operation;
  std::string domain;            // empty: ai.onnx
  std::vector<int64_t> inputs;   // tensors; -1: left out
  std::vector<int64_t> outputs;  // tensors; -1: not wanted
  std::vector<OnnxAttribute> attributes;
  OnnxControl control = OnnxControl::none;
  int64_t region = -1;     // the body it stands in; -1: the graph itself
  bool is_folded = false;  // its results are known beforehand, so that nothing is left to run

  const OnnxAttribute* attribute(std::string_view name) const;
};

// A body of a control-flow node.
struct OnnxRegion {
  int64_t begin = -1, end = -1;  // nodes
  int64_t parent = -1;           // the region around it
  std::string branch;            // attribute: "then_branch", "else_branch", "body"
  bool is_counted = true;        // false: the branch of an If that is not taken, or the cheaper one
  int64_t runs = 1;              // of a Loop or Scan, where known beforehand
  bool runs_are_known = true;    // false: they depend on data, and one is counted
};

// Loops within loops can ask for more than a number holds.
inline constexpr int64_t most_onnx_runs = int64_t{1} << 40;

struct OnnxGraph {
  std::string source;
  std::string name;
  std::string producer;
  std::map<std::string, int64_t> opsets;  // by domain; "" = ai.onnx
  std::vector<OnnxNode> nodes;
  std::vector<OnnxTensor> tensors;
  std::vector<int64_t> inputs, outputs;  // tensors
  std::vector<OnnxRegion> regions;
  std::vector<std::string> notes;  // what a reader should know: shapes assumed, bodies counted once

  int64_t opset(std::string_view domain = "") const;  // 0: not imported
  const OnnxTensor& tensor(int64_t index) const { return tensors[static_cast<size_t>(index)]; }
  bool is_counted(const OnnxNode& node) const;  // in no region that is left out
  int64_t runs_of(int64_t region) const;        // by it and all loops around it, most_onnx_runs at most
  int64_t runs(const OnnxNode& node) const { return runs_of(node.region); }
};

struct OnnxOptions {
  std::map<std::string, int64_t> bind;  // sizes of symbolic dimensions, by name or as "input.axis"
  bool batch_is_one = false;            // dimensions called batch, batch_size, bs, N or b need no binding
  OnnxLimits limits;
};

// The nodes of a file in an order in which they can run, without shapes.
OnnxGraph link_onnx(const OnnxFile& file, const OnnxOptions& options);

// Nodes that read each tensor, in the order of the graph.
std::vector<std::vector<int64_t>> tensor_readers(const OnnxGraph& graph);

}  // namespace foretoken
