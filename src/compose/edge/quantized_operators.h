// Operators between DequantizeLinear and QuantizeLinear (QDQ form) that a runtime runs on 8-bit tensors.
#pragma once

#include <cstdint>
#include <vector>

#include "compose/edge/fusion_rules.h"
#include "model/onnx/graph.h"
#include "model/work.h"

namespace foretoken {

struct QuantizedMatch {
  const QuantizedRule* rule = nullptr;
  int64_t node = 0;
  // The activation and QuantizeLinear after it, and DequantizeLinears that only such matches read.
  std::vector<int64_t> around;
  double read_bytes = 0, written_bytes = 0;  // as the operator reads and writes them; of constants none
};

// Of all nodes that are counted and not folded, in the order of the graph. A runtime gives each operator a
// DequantizeLinear of its own, so one that several read vanishes where all of them are matched: it stands with the
// first.
std::vector<QuantizedMatch> quantized_matches(const OnnxGraph& graph, const FusionRules& rules);

// Whether DequantizeLinear makes an input of the node, constant weights included.
bool reads_dequantized(const OnnxGraph& graph, const OnnxNode& node);

// What DequantizeLinear reads and writes at every run to make the node's weights out of constants.
Work weight_dequantization(const OnnxGraph& graph, const OnnxNode& node);

}  // namespace foretoken
