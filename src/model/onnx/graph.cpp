#include "model/onnx/graph.h"

namespace foretoken {

const OnnxAttribute* OnnxNode::attribute(std::string_view wanted) const {
  for (const OnnxAttribute& own : attributes) {
    if (own.name == wanted) return &own;
  }
  return nullptr;
}

int64_t OnnxGraph::opset(std::string_view domain) const {
  const auto found = opsets.find(std::string(domain));
  return found == opsets.end() ? 0 : found->second;
}

bool OnnxGraph::is_counted(const OnnxNode& node) const {
  for (int64_t region = node.region; region >= 0; region = regions[static_cast<size_t>(region)].parent) {
    if (!regions[static_cast<size_t>(region)].is_counted) return false;
  }
  return true;
}

int64_t OnnxGraph::runs_of(int64_t region) const {
  int64_t all = 1;
  for (; region >= 0; region = regions[static_cast<size_t>(region)].parent) {
    const int64_t own = regions[static_cast<size_t>(region)].runs;
    if (own == 0) return 0;
    all = all > most_onnx_runs / own ? most_onnx_runs : all * own;
  }
  return all;
}

std::vector<std::vector<int64_t>> tensor_readers(const OnnxGraph& graph) {
  std::vector<std::vector<int64_t>> readers(graph.tensors.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const int64_t input : graph.nodes[i].inputs) {
      if (input < 0) continue;
      std::vector<int64_t>& own = readers[static_cast<size_t>(input)];
      const auto node = static_cast<int64_t>(i);
      if (own.empty() || own.back() != node) own.push_back(node);
    }
  }
  return readers;
}

}  // namespace foretoken
