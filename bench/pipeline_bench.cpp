// One pipeline iteration: exact runs against the number of micro-batches, and the bound that searches use.
#include <string>

#include <benchmark/benchmark.h>

#include "training/schedule/closed_form.h"
#include "training/schedule/pipeline_schedule.h"

namespace foretoken {
namespace {

// As of a transformer: even layers, a short first chunk more for the embedding, a longer last one for the head.
PipelineWork transformer_pipeline(int64_t stages, int64_t virtual_stages, int64_t micro_batches) {
  PipelineWork work{.stages = stages,
                    .virtual_stages = virtual_stages,
                    .micro_batches = micro_batches,
                    .send_forward = 20e-6,
                    .send_backward = 20e-6};
  work.chunks.assign(static_cast<size_t>(stages * virtual_stages), {1e-3, 1.1e-3, 0.95e-3});
  work.chunks.front().forward += 20e-6;
  work.chunks.front().backward_weight += 30e-6;
  work.chunks.back().forward += 0.1e-3;
  work.chunks.back().backward_input += 0.1e-3;
  work.chunks.back().backward_weight += 0.1e-3;
  return work;
}

void run_of(benchmark::State& state, const std::string& schedule, int64_t virtual_stages) {
  const PipelineWork work = transformer_pipeline(16, virtual_stages, state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(run_pipeline(schedule, work).seconds);
}

void bound_of(benchmark::State& state, const std::string& schedule, int64_t virtual_stages) {
  const PipelineWork work = transformer_pipeline(16, virtual_stages, 128);
  for (auto _ : state) benchmark::DoNotOptimize(pipeline_seconds_bound(schedule, work));
}

void micro_batches(benchmark::internal::Benchmark* benchmark) {
  benchmark->Arg(64)->Arg(128)->Arg(512)->Arg(4096)->Arg(65536)->Unit(benchmark::kMillisecond);
}

BENCHMARK_CAPTURE(run_of, gpipe, "gpipe", 1)->Apply(micro_batches);
BENCHMARK_CAPTURE(run_of, 1f1b, "1f1b", 1)->Apply(micro_batches);
BENCHMARK_CAPTURE(run_of, interleaved_8, "interleaved", 8)->Apply(micro_batches);
BENCHMARK_CAPTURE(run_of, zb_h1, "zb-h1", 1)->Apply(micro_batches);
BENCHMARK_CAPTURE(run_of, zb_h2, "zb-h2", 1)->Apply(micro_batches);
BENCHMARK_CAPTURE(run_of, zb_v, "zb-v", 2)->Apply(micro_batches);
BENCHMARK_CAPTURE(run_of, dualpipe, "dualpipe", 1)->Apply(micro_batches);
BENCHMARK_CAPTURE(bound_of, 1f1b, "1f1b", 1);
BENCHMARK_CAPTURE(bound_of, interleaved_8, "interleaved", 8);

}  // namespace
}  // namespace foretoken

BENCHMARK_MAIN();
