// How many mappings a second are evaluated, and searched, on an Eyeriss-like design and on a plain array for GEMM.
#include <benchmark/benchmark.h>

#include "accelerator/evaluator.h"
#include "accelerator/mapper/mapper.h"

namespace foretoken {
namespace {

Architecture eyeriss() {
  const auto spad = [](const char* name, int64_t depth, int word_bits) {
    return AcceleratorLevel{.name = name,
                            .instances_x = 14,
                            .instances_y = 12,
                            .words_per_access = 16 / word_bits,
                            .depth = depth,
                            .bandwidth = {.read = 2, .write = 2},
                            .energy = {.read_pj = 0.2, .fill_pj = 0.2, .update_pj = 0.2}};
  };
  return {.name = "eyeriss",
          .levels = {
              {.name = "dram", .words_per_access = 8, .energy = {.read_pj = 512, .fill_pj = 512, .update_pj = 512}},
              {.name = "buffer",
               .words_per_access = 8,
               .depth = 16384,
               .bandwidth = {.read = 16, .write = 16},
               .energy = {.read_pj = 18, .fill_pj = 14, .update_pj = 14}},
              {.name = "columns", .kind = LevelKind::network},
              {.name = "rows", .kind = LevelKind::network, .instances_x = 14},
              spad("inputs", 12, 8),
              spad("weights", 192, 8),
              spad("sums", 16, 16),
              {.name = "multipliers",
               .kind = LevelKind::compute,
               .instances_x = 14,
               .instances_y = 12,
               .energy = {.compute_pj = 0.2}},
          }};
}

Problem resnet_conv1() {
  return convolution_problem({.in_channels = 3,
                              .out_channels = 64,
                              .out_width = 112,
                              .out_height = 112,
                              .kernel_width = 7,
                              .kernel_height = 7,
                              .stride_width = 2,
                              .stride_height = 2});
}

// Scratchpads for one tensor each; weights pass the buffer by.
Constraints row_stationary(const Problem& problem) {
  Constraints constraints;
  const auto keeps_only = [&](int level, std::vector<const char*> names) {
    for (int t = 0; t < std::ssize(problem.tensors); ++t) {
      bool keep = false;
      for (const char* name : names) keep = keep || problem.tensors[t].name == name;
      constraints.storage.push_back({.level = level, .tensor = t, .keep = keep});
    }
  };
  keeps_only(1, {"Inputs", "Outputs"});
  keeps_only(4, {"Inputs"});
  keeps_only(5, {"Weights"});
  keeps_only(6, {"Outputs"});
  return constraints;
}

Architecture gemm_array() {
  return {.name = "array",
          .levels = {
              {.name = "dram", .words_per_access = 8, .energy = {.read_pj = 512, .fill_pj = 512, .update_pj = 512}},
              {.name = "buffer",
               .words_per_access = 8,
               .depth = 8192,
               .energy = {.read_pj = 18, .fill_pj = 14, .update_pj = 14}},
              {.name = "registers",
               .instances_x = 16,
               .instances_y = 16,
               .depth = 64,
               .energy = {.read_pj = 0.25, .fill_pj = 0.22, .update_pj = 0.22}},
              {.name = "multipliers",
               .kind = LevelKind::compute,
               .instances_x = 16,
               .instances_y = 16,
               .energy = {.compute_pj = 0.2}},
          }};
}

void evaluate_again(benchmark::State& state, const Architecture& architecture, const Problem& problem,
                    const Mapping& mapping) {
  const MappingEvaluator evaluator(architecture, problem);
  Evaluation result;
  for (auto _ : state) {
    benchmark::DoNotOptimize(evaluator.evaluate(mapping, result));
    benchmark::DoNotOptimize(result.energy_pj);
  }
  state.SetItemsProcessed(state.iterations());
}

void evaluate_found(benchmark::State& state, const Architecture& architecture, const Problem& problem,
                    const Constraints& constraints) {
  const MapperResult found =
      search_mappings(architecture, problem, constraints, {.most_tries = 20'000, .remainders = Remainders::never});
  evaluate_again(state, architecture, problem, found.best->mapping);
}

void search(benchmark::State& state, const Architecture& architecture, const Problem& problem,
            const Constraints& constraints) {
  int64_t tried = 0, evaluations = 0;
  uint64_t seed = 0;
  for (auto _ : state) {
    const MapperResult result = search_mappings(architecture, problem, constraints, {.seed = ++seed});
    tried += result.tried;
    evaluations += result.evaluations;
  }
  state.counters["tried"] = benchmark::Counter(static_cast<double>(tried), benchmark::Counter::kIsRate);
  state.counters["valid"] = benchmark::Counter(static_cast<double>(evaluations), benchmark::Counter::kIsRate);
}

void evaluate_on_eyeriss(benchmark::State& state) {
  evaluate_found(state, eyeriss(), resnet_conv1(), row_stationary(resnet_conv1()));
}

void evaluate_on_gemm_array(benchmark::State& state) {
  evaluate_found(state, gemm_array(), gemm_problem({.m = 128, .n = 3072, .k = 768}), {});
}

void search_on_eyeriss(benchmark::State& state) {
  search(state, eyeriss(), resnet_conv1(), row_stationary(resnet_conv1()));
}

void search_on_gemm_array(benchmark::State& state) {
  search(state, gemm_array(), gemm_problem({.m = 128, .n = 3072, .k = 768}), {});
}

struct ConvolutionLayer {
  int64_t in_channels, out_channels, out_side, kernel, stride;
};

// The distinct layers of ResNet-50 (stride in the 3x3 convolutions), its fully connected one last.
constexpr ConvolutionLayer resnet50[] = {
    {3, 64, 112, 7, 2},    {64, 64, 56, 1, 1},   {64, 64, 56, 3, 1},    {64, 256, 56, 1, 1},   {256, 64, 56, 1, 1},
    {256, 128, 56, 1, 1},  {128, 128, 28, 3, 2}, {128, 512, 28, 1, 1},  {256, 512, 28, 1, 2},  {512, 128, 28, 1, 1},
    {128, 128, 28, 3, 1},  {512, 256, 28, 1, 1}, {256, 256, 14, 3, 2},  {256, 1024, 14, 1, 1}, {512, 1024, 14, 1, 2},
    {1024, 256, 14, 1, 1}, {256, 256, 14, 3, 1}, {1024, 512, 14, 1, 1}, {512, 512, 7, 3, 2},   {512, 2048, 7, 1, 1},
    {1024, 2048, 7, 1, 2}, {2048, 512, 7, 1, 1}, {512, 512, 7, 3, 1},   {2048, 1000, 1, 1, 1},
};

void search_all_of_resnet50(benchmark::State& state) {
  const Architecture architecture = eyeriss();
  double gap = 0;
  for (auto _ : state) {
    gap = 0;
    for (const ConvolutionLayer& layer : resnet50) {
      const Problem problem = convolution_problem({.in_channels = layer.in_channels,
                                                   .out_channels = layer.out_channels,
                                                   .out_width = layer.out_side,
                                                   .out_height = layer.out_side,
                                                   .kernel_width = layer.kernel,
                                                   .kernel_height = layer.kernel,
                                                   .stride_width = layer.stride,
                                                   .stride_height = layer.stride});
      gap += search_mappings(architecture, problem, row_stationary(problem), {}).gap;
    }
  }
  state.counters["mean_gap"] = gap / static_cast<double>(std::size(resnet50));
}

BENCHMARK(evaluate_on_eyeriss);
BENCHMARK(evaluate_on_gemm_array);
BENCHMARK(search_on_eyeriss)->Unit(benchmark::kMillisecond);
BENCHMARK(search_on_gemm_array)->Unit(benchmark::kMillisecond);
BENCHMARK(search_all_of_resnet50)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
}  // namespace foretoken

BENCHMARK_MAIN();
