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

BENCHMARK(evaluate_on_eyeriss);
BENCHMARK(evaluate_on_gemm_array);
BENCHMARK(search_on_eyeriss)->Unit(benchmark::kMillisecond);
BENCHMARK(search_on_gemm_array)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace foretoken

BENCHMARK_MAIN();
