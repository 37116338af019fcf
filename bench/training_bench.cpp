// Searching training plans, and one large plan in full.
#include <thread>

#include <benchmark/benchmark.h>

#include "hardware/catalogue.h"
#include "kernel/learned.h"
#include "model/catalogue.h"
#include "plan/training_search.h"
#include "training/training_machine.h"

namespace foretoken {
namespace {

const std::filesystem::path data = FORETOKEN_SOURCE_DIR "/data";

std::unique_ptr<MachineModels> machine_of(const std::string& name, int64_t devices) {
  const Cluster cluster =
      cluster_with_nodes(HardwareCatalogue(data / "hardware").cluster(name), static_cast<int>(devices / 8));
  const Device& device = cluster.node.device;
  KernelPredictor kernels(device, read_roofline_intervals(data / "kernels" / "roofline_intervals.json"),
                          std::make_shared<LearnedKernels>(device, data / "kernels" / "calibrations"));
  return std::make_unique<MachineModels>(cluster, std::move(kernels), std::nullopt, std::nullopt);
}

TrainingJob job_of(const std::string& model) {
  return {.model = ModelCatalogue(data / "models").model(model), .sequence_length = 8192};
}

TrainingStack stack() {
  return TrainingStackCatalogue(data / "training" / "stacks").stack("megatron-bridge-26.08");
}

// Everything a search does, on one core, piece costs of all sizes included. `items` are plans looked at.
void search(benchmark::State& state, const std::string& model, int64_t devices, int64_t batch) {
  const auto machine = machine_of("h100_roce_pods", devices);
  const TrainingSearch question{.job = job_of(model),
                                .stack = stack(),
                                .machine = machine->machine(),
                                .devices = devices,
                                .global_batch = batch,
                                .fast_domain = 8,
                                .capacity = training_capacity(machine->device())};
  int64_t plans = 0, estimated = 0;
  for (auto _ : state) {
    const TrainingSearchResult result = search_training_plans(question);
    plans += result.looked_at;
    estimated = result.estimated;
  }
  state.SetItemsProcessed(plans);
  state.counters["plans"] = static_cast<double>(plans) / static_cast<double>(state.iterations());
  state.counters["estimated"] = static_cast<double>(estimated);
}
BENCHMARK_CAPTURE(search, llama_70b_on_512, "Llama-3.1-70B", 512, 1024)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(search, llama_405b_on_16384, "Llama-3.1-405B", 16384, 2048)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(search, deepseek_v3_on_2048, "DeepSeek-V3", 2048, 15360)->Unit(benchmark::kMillisecond);

// The plans of a search, judged by time alone once what they have in common is known.
void quick_seconds(benchmark::State& state) {
  const auto machine = machine_of("h100_roce_pods", 16384);
  const TrainingJob job = job_of("Llama-3.1-405B");
  const PlanSpace space{.model = &job.model,
                        .sequence_length = job.sequence_length,
                        .devices = 16384,
                        .global_batch = 2048,
                        .fast_domain = 8};
  std::vector<TrainingPlan> plans;
  for (const RankSizes& sizes : rank_sizes(space)) {
    for (const TrainingPlan& pipeline : pipeline_plans(space, sizes)) {
      for (const TrainingPlan& plan : memory_plans(space, pipeline)) plans.push_back(plan);
    }
  }
  IterationModel model(job, stack(), machine->machine());
  for (const TrainingPlan& plan : plans) model.quick_seconds(plan);
  size_t next = 0;
  for (auto _ : state) benchmark::DoNotOptimize(model.quick_seconds(plans[next++ % plans.size()]));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(quick_seconds);

// Llama 3.1 405B on 16,384 GPUs, in tensor, context, pipeline and data ranks, `range` times the batch; nothing known.
void large_plan(benchmark::State& state) {
  const auto machine = machine_of("h100_roce_pods", 16384);
  const TrainingJob job = job_of("Llama-3.1-405B");
  const TrainingStack software = stack();
  const TrainingPlan plan{.parallel = {.tensor = 8, .pipeline = 16, .data = 64, .context = 2, .sequence = true},
                          .micro_batch = 1,
                          .global_batch = 2048 * state.range(0),
                          .schedule = "interleaved",
                          .virtual_stages = 8,
                          .embedding_in_split = true,
                          .loss_in_split = true,
                          .sharding = Sharding::optimizer};
  for (auto _ : state) {
    IterationModel model(job, software, machine->machine());
    benchmark::DoNotOptimize(model.estimate(plan).seconds.value);
  }
}
BENCHMARK(large_plan)->Arg(1)->Arg(16)->Arg(256)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace foretoken

BENCHMARK_MAIN();
