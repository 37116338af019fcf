// What a runtime joins before it runs a network, as data (data/edge/fusion/<runtime>.json): patterns of ONNX operators
// and the kernel that each becomes.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/edge/edge_kernel.h"
#include "model/onnx/graph.h"

namespace foretoken {

// What an input of a pattern's node has to be.
struct FusionInput {
  enum class Kind {
    node,      // the first output of another node of the pattern
    tensor,    // any tensor, the same one wherever the pattern names it
    constant,  // known beforehand
    scalar,    // a constant of one element
    vector,    // a constant with one side that is not 1
    number     // a scalar of this value, within a thousandth
  };
  Kind kind = Kind::tensor;
  size_t index = 0;  // of the node, or of the name of the tensor
  double value = 0;
};

// What a node has to be beside its operator.
enum class FusionCondition {
  none,
  last_axis,         // works along the last axis alone
  swaps_last_axes,   // a transpose of the last two axes
  moves_first_axis,  // a transpose that puts the first axis before the last, or behind it
  same_shapes        // all inputs have the output's shape
};

struct FusionNode {
  std::string id;
  std::vector<std::string> operations;  // any of these: "Conv", "com.microsoft.Gelu"
  // In order, but for operators whose operands may be swapped; further inputs may be anything.
  std::vector<FusionInput> inputs;
  FusionCondition condition = FusionCondition::none;
  bool stays = false;  // has to be there, but is not part of the kernel
};

// A pattern: each node after the first reads an earlier one. What all but the last make is read within the pattern
// alone.
struct FusionRule {
  std::string name, source;
  std::vector<FusionNode> nodes;
  size_t tensors = 0;                    // names of tensors that come from outside the pattern
  std::optional<EdgeKernelKind> kernel;  // nothing: no work is left
  size_t sizes_of = 0;                   // the node that has the kernel's sizes
  EdgeActivation activation = EdgeActivation::none;
  bool accumulates = false;
};

// Operators that run on 8-bit tensors where DequantizeLinear makes their inputs and QuantizeLinear takes their result.
struct QuantizedRule {
  std::string name, source;
  std::vector<std::string> operations;   // of ai.onnx
  std::vector<std::string> activations;  // that QuantizeLinear does by where it cuts off
  size_t inputs = 0;                     // that have to be dequantized, from the first on; 0: all
  bool needs_quantize = true;            // false: the result may stay wide, where no QuantizeLinear takes it
  bool same_scale = false;  // and zero point, before and after: the operator only moves or chooses elements
};

struct FusionRules {
  std::string runtime, about;
  std::vector<QuantizedRule> quantized;  // come before the others
  std::vector<FusionRule> rules;         // the first that fits is taken; optional nodes are written out, longest first
};

// InputError names file and path.
FusionRules parse_fusion_rules(std::string_view text, const std::string& source);
FusionRules read_fusion_rules(const std::filesystem::path& path);

// Nodes of a graph that a rule joins.
struct FusionMatch {
  const FusionRule* rule = nullptr;
  std::vector<int64_t> nodes;  // one per node of the pattern
};

// Finds patterns in a graph. Both must outlive it.
class FusionMatcher {
 public:
  FusionMatcher(const OnnxGraph& graph, const FusionRules& rules);

  // The first rule whose pattern begins at this node; nodes in `taken` are left alone.
  std::optional<FusionMatch> match(int64_t first, const std::vector<bool>& taken) const;

 private:
  struct Search;
  bool extend(Search& search) const;
  bool fits(Search& search, const FusionNode& wanted, int64_t node) const;
  bool is_closed(const Search& search) const;

  const OnnxGraph& graph_;
  const FusionRules& rules_;
  std::vector<std::vector<int64_t>> readers_;  // of each tensor
  std::vector<bool> is_output_;                // tensors that leave the graph
};

}  // namespace foretoken
