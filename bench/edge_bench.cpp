// A graph of 2,000 nodes on an edge device after its import: joining nodes, and pricing the steps.
#include <benchmark/benchmark.h>

#include "compose/edge/edge_model.h"
#include "kernel/edge/edge_predictor_file.h"
#include "model/onnx/test_graphs.h"

namespace foretoken {
namespace {

constexpr int blocks = 75;  // of 27 nodes

OnnxGraph network() {
  return transformer_network(blocks).graph({.bind = {{"batch", 8}}});
}

FusionRules rules() {
  return read_fusion_rules(FORETOKEN_SOURCE_DIR "/data/edge/fusion/onnxruntime.json");
}

void lower_graph(benchmark::State& state) {
  const OnnxGraph graph = network();
  const FusionRules own = rules();
  for (auto _ : state) benchmark::DoNotOptimize(lower_edge(graph, own).steps.data());
}
BENCHMARK(lower_graph)->Unit(benchmark::kMicrosecond);

void predict_model(benchmark::State& state) {
  const EdgeLowering lowering = lower_edge(network(), rules());
  const EdgePredictor predictor = read_edge_predictor(FORETOKEN_SOURCE_DIR "/data/edge/devices/neoverse_v1_ort.json");
  for (auto _ : state) benchmark::DoNotOptimize(estimate_edge_model(lowering, predictor).seconds.value);
  state.counters["steps"] = static_cast<double>(lowering.steps.size());
}
BENCHMARK(predict_model)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace foretoken

BENCHMARK_MAIN();
