#include "model/onnx/node_order.h"

#include <functional>
#include <queue>

#include <fmt/format.h>

#include "base/error.h"

namespace foretoken {
namespace {

void set_producers(OnnxGraph& graph, const std::string& source) {
  for (OnnxTensor& tensor : graph.tensors) tensor.producer = -1;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const int64_t output : graph.nodes[i].outputs) {
      if (output < 0) continue;
      OnnxTensor& tensor = graph.tensors[static_cast<size_t>(output)];
      if (tensor.producer >= 0 || tensor.origin == OnnxShapeOrigin::given) {
        throw InputError({.source = source,
                          .path = fmt::format("node {}", printable(graph.nodes[i].name)),
                          .value = fmt::format("a second tensor called '{}'", printable(tensor.name)),
                          .expected = "each tensor made once"});
      }
      tensor.producer = static_cast<int64_t>(i);
    }
  }
  for (const OnnxNode& node : graph.nodes) {
    for (const int64_t input : node.inputs) {
      if (input < 0) continue;
      const OnnxTensor& tensor = graph.tensor(input);
      if (tensor.producer >= 0 || tensor.origin == OnnxShapeOrigin::given) continue;
      throw InputError({.source = source,
                        .path = fmt::format("node {}", printable(node.name)),
                        .value = fmt::format("tensor '{}'", printable(tensor.name)),
                        .expected = "a tensor that a node, an input or an initializer gives"});
    }
  }
}

}  // namespace

void put_in_order(OnnxGraph& graph, const std::string& source) {
  set_producers(graph, source);
  const size_t count = graph.nodes.size();
  std::vector<std::vector<size_t>> after(count);
  std::vector<size_t> waits(count, 0);
  const auto add_edge = [&](int64_t from, size_t to) {
    if (from < 0) return;
    after[static_cast<size_t>(from)].push_back(to);
    ++waits[to];
  };
  for (size_t i = 0; i < count; ++i) {
    const OnnxNode& node = graph.nodes[i];
    for (const int64_t input : node.inputs) {
      if (input >= 0) add_edge(graph.tensors[static_cast<size_t>(input)].producer, i);
    }
    if (node.region >= 0) {
      const OnnxRegion& region = graph.regions[static_cast<size_t>(node.region)];
      add_edge(region.begin, i);
      add_edge(static_cast<int64_t>(i), static_cast<size_t>(region.end));
    }
  }
  for (const OnnxRegion& region : graph.regions) add_edge(region.begin, static_cast<size_t>(region.end));

  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < count; ++i) {
    if (waits[i] == 0) ready.push(i);
  }
  std::vector<size_t> order;
  while (!ready.empty()) {
    const size_t node = ready.top();
    ready.pop();
    order.push_back(node);
    for (const size_t next : after[node]) {
      if (--waits[next] == 0) ready.push(next);
    }
  }
  if (order.size() != count) {
    size_t stuck = 0;
    while (waits[stuck] == 0) ++stuck;
    throw InputError({.source = source,
                      .path = fmt::format("node {}", printable(graph.nodes[stuck].name)),
                      .value = "waits for its own output",
                      .expected = "a graph without cycles"});
  }

  std::vector<OnnxNode> nodes;
  std::vector<int64_t> place(count);
  for (size_t i = 0; i < count; ++i) {
    nodes.push_back(std::move(graph.nodes[order[i]]));
    place[order[i]] = static_cast<int64_t>(i);
  }
  graph.nodes = std::move(nodes);
  for (OnnxTensor& tensor : graph.tensors) {
    if (tensor.producer >= 0) tensor.producer = place[static_cast<size_t>(tensor.producer)];
  }
  for (OnnxRegion& region : graph.regions) {
    region.begin = place[static_cast<size_t>(region.begin)];
    region.end = place[static_cast<size_t>(region.end)];
  }
}

}  // namespace foretoken
