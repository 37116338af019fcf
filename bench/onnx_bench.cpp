// Import of a graph of 2,000 nodes and more: reading, shapes, and what it takes to count it.
#include <benchmark/benchmark.h>

#include "model/onnx/read_file.h"
#include "model/onnx/read_graph.h"
#include "model/onnx/summary.h"
#include "model/onnx/test_graphs.h"
#include "model/onnx/work.h"
#include "model/onnx/writer.h"

namespace foretoken {
namespace {

constexpr int blocks = 75;  // of 27 nodes

void import_graph(benchmark::State& state) {
  const std::string content = onnx_text(transformer_network(blocks).file());
  size_t nodes = 0;
  for (auto _ : state) {
    const OnnxGraph graph = import_onnx(parse_onnx(content, "bench"), {.bind = {{"batch", 8}}});
    nodes = graph.nodes.size();
    benchmark::DoNotOptimize(graph.tensors.data());
  }
  state.counters["nodes"] = static_cast<double>(nodes);
}
BENCHMARK(import_graph)->Unit(benchmark::kMillisecond);

void summarize_graph(benchmark::State& state) {
  const OnnxGraph graph = transformer_network(blocks).graph({.bind = {{"batch", 8}}});
  for (auto _ : state) benchmark::DoNotOptimize(summarize(graph).flops);
}
BENCHMARK(summarize_graph)->Unit(benchmark::kMillisecond);

void list_operators(benchmark::State& state) {
  const OnnxGraph graph = transformer_network(blocks).graph({.bind = {{"batch", 8}}});
  for (auto _ : state) benchmark::DoNotOptimize(onnx_operators(graph).size());
}
BENCHMARK(list_operators)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace foretoken

BENCHMARK_MAIN();
