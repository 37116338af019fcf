// How fast predictions are: one kernel by tier, one model's operators, one whole step.
#include <benchmark/benchmark.h>

#include "compose/step_estimate.h"
#include "hardware/catalogue.h"
#include "kernel/kernel.h"
#include "kernel/learned.h"
#include "model/catalogue.h"
#include "model/step.h"

namespace foretoken {
namespace {

const std::filesystem::path data = FORETOKEN_SOURCE_DIR "/data";

KernelPredictor predictor(Tier tier) {
  const Device device = HardwareCatalogue(data / "hardware").device("h100_sxm");
  return KernelPredictor(device, read_roofline_intervals(data / "kernels" / "roofline_intervals.json"),
                         std::make_shared<LearnedKernels>(device, data / "kernels" / "calibrations"), tier);
}

// Every call is another shape, so that nothing can be remembered.
KernelShape gemm(int64_t i) {
  return GemmShape{.m = 1 + i % 4096, .n = 1024 + 64 * (i % 97), .k = 1024 + 128 * (i % 53)};
}

KernelShape prefill(int64_t i) {
  return AttentionShape{.batch = 1 + i % 8,
                        .heads = 32,
                        .kv_heads = 8,
                        .q_len = 64 + i % 4096,
                        .kv_len = 64 + i % 4096,
                        .writes_kv = true};
}

KernelShape decode(int64_t i) {
  return AttentionShape{.phase = AttentionPhase::decode,
                        .batch = 1 + i % 256,
                        .heads = 32,
                        .kv_heads = 8,
                        .kv_len = 64 + i % 8192,
                        .writes_kv = true};
}

KernelShape moe(int64_t i) {
  return MoeShape{.tokens = 1 + i % 65521, .hidden = 4096, .inter = 1536, .top_k = 8, .experts = 128, .ep = 4};
}

void one_kernel(benchmark::State& state, KernelShape (*shape)(int64_t), Tier tier) {
  const KernelPredictor kernels = predictor(tier);
  int64_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(kernels.estimate(shape(i++)));
  state.SetItemsProcessed(state.iterations());
}

// A thousand new shapes a call; the time is that of one of them.
void batch_of_kernels(benchmark::State& state, KernelShape (*shape)(int64_t), Tier tier) {
  constexpr size_t size = 1000;
  const KernelPredictor kernels = predictor(tier);
  int64_t next = 0;
  std::vector<KernelShape> shapes(size);
  std::vector<KernelEstimate> estimates(size);
  while (state.KeepRunningBatch(size)) {
    for (KernelShape& one : shapes) one = shape(next++);
    kernels.estimate_batch(shapes, {}, estimates);
    benchmark::DoNotOptimize(estimates.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK_CAPTURE(one_kernel, gemm_roofline, gemm, Tier::roofline);
BENCHMARK_CAPTURE(one_kernel, gemm_cross, gemm, Tier::cross);
BENCHMARK_CAPTURE(one_kernel, gemm_measured, gemm, Tier::measured);
BENCHMARK_CAPTURE(one_kernel, prefill_roofline, prefill, Tier::roofline);
BENCHMARK_CAPTURE(one_kernel, prefill_cross, prefill, Tier::cross);
BENCHMARK_CAPTURE(one_kernel, prefill_measured, prefill, Tier::measured);
BENCHMARK_CAPTURE(one_kernel, decode_roofline, decode, Tier::roofline);
BENCHMARK_CAPTURE(one_kernel, decode_cross, decode, Tier::cross);
BENCHMARK_CAPTURE(one_kernel, decode_measured, decode, Tier::measured);
BENCHMARK_CAPTURE(one_kernel, moe_roofline, moe, Tier::roofline);
BENCHMARK_CAPTURE(one_kernel, moe_cross, moe, Tier::cross);
BENCHMARK_CAPTURE(one_kernel, moe_measured, moe, Tier::measured);
BENCHMARK_CAPTURE(batch_of_kernels, gemm_cross, gemm, Tier::cross);
BENCHMARK_CAPTURE(batch_of_kernels, gemm_measured, gemm, Tier::measured);
BENCHMARK_CAPTURE(batch_of_kernels, prefill_cross, prefill, Tier::cross);
BENCHMARK_CAPTURE(batch_of_kernels, prefill_measured, prefill, Tier::measured);
BENCHMARK_CAPTURE(batch_of_kernels, decode_cross, decode, Tier::cross);
BENCHMARK_CAPTURE(batch_of_kernels, decode_measured, decode, Tier::measured);
BENCHMARK_CAPTURE(batch_of_kernels, moe_cross, moe, Tier::cross);
BENCHMARK_CAPTURE(batch_of_kernels, moe_measured, moe, Tier::measured);

void operators_of_a_step(benchmark::State& state) {
  const Model model = ModelCatalogue(data / "models").model("Llama-3.1-70B");
  int64_t batch = 1;
  for (auto _ : state) {
    const StepRequest request{.phase = StepPhase::decode, .batch = 1 + batch++ % 512, .context_len = 2048};
    benchmark::DoNotOptimize(stage_operators(model, request, {.tensor = 8}, 0));
  }
}
BENCHMARK(operators_of_a_step);

void whole_step(benchmark::State& state) {
  const Model model = ModelCatalogue(data / "models").model("Llama-3.1-70B");
  const KernelPredictor kernels = predictor(Tier::best);
  int64_t batch = 1;
  for (auto _ : state) {
    const StepRequest request{.phase = StepPhase::decode, .batch = 1 + batch++ % 512, .context_len = 2048};
    benchmark::DoNotOptimize(estimate_step(model, request, {.tensor = 8}, kernels));
  }
}
BENCHMARK(whole_step);

}  // namespace
}  // namespace foretoken

BENCHMARK_MAIN();
