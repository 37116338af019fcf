#include "model/onnx/activation_peak.h"

#include <algorithm>
#include <vector>

#include "base/error.h"

namespace foretoken {

ActivationPeak activation_peak(const OnnxGraph& graph, std::span<const int64_t> turns) {
  const size_t nodes = graph.nodes.size();
  ensure(turns.empty() || turns.size() == nodes, "every node has a turn");
  if (nodes == 0) return {};
  struct Life {
    size_t first = 0, last = 0;
    bool is_used = false, is_read = false, is_kept = false;  // kept: beyond a turn, whatever reads it
  };
  std::vector<Life> lives(graph.tensors.size());
  const auto use = [&](int64_t tensor, size_t at) -> Life* {
    if (tensor < 0) return nullptr;
    const int64_t whole = graph.tensor(tensor).same_storage;
    Life& life = lives[static_cast<size_t>(whole >= 0 ? whole : tensor)];
    life.first = life.is_used ? std::min(life.first, at) : at;
    life.last = life.is_used ? std::max(life.last, at) : at;
    life.is_used = true;
    return &life;
  };
  for (size_t i = 0; i < nodes; ++i) {
    if (!graph.is_counted(graph.nodes[i])) continue;
    const size_t turn = turns.empty() ? i : static_cast<size_t>(turns[i]);
    for (const int64_t input : graph.nodes[i].inputs) {
      if (Life* life = use(input, turn)) life->is_read = true;
    }
    for (const int64_t output : graph.nodes[i].outputs) use(output, turn);
  }
  for (const int64_t input : graph.inputs) {
    use(input, 0);
    if (Life* life = use(input, nodes - 1)) life->is_kept = true;
  }
  for (const int64_t output : graph.outputs) {
    if (Life* life = use(output, nodes - 1)) life->is_kept = true;
  }
  std::vector<double> starts(nodes, 0), ends(nodes, 0);
  for (size_t i = 0; i < lives.size(); ++i) {
    const Life& life = lives[i];
    const bool is_within = life.first == life.last && life.is_read && !life.is_kept && graph.tensors[i].producer >= 0;
    if (!life.is_used || is_within || graph.tensors[i].is_constant) continue;
    starts[life.first] += graph.tensors[i].bytes();
    ends[life.last] += graph.tensors[i].bytes();
  }
  ActivationPeak peak;
  double live = 0;
  for (size_t i = 0; i < nodes; ++i) {
    live += starts[i];
    if (live > peak.bytes.value()) peak = {.bytes = Bytes(live), .node = static_cast<int64_t>(i)};
    live -= ends[i];
  }
  return peak;
}

}  // namespace foretoken
