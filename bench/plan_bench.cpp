// How fast serving layouts are judged by their bounds, and simulated.
#include <benchmark/benchmark.h>

#include "hardware/catalogue.h"
#include "kernel/learned.h"
#include "model/catalogue.h"
#include "plan/serving/layout_space.h"
#include "plan/serving/serving_search.h"
#include "serving/load/synthetic.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

const fs::path library = FORETOKEN_SOURCE_DIR "/data";

ServingQuestion llama_70b_on_h100s() {
  const HardwareCatalogue hardware(library / "hardware");
  const Device device = hardware.device("h100_sxm");
  return {.model = ModelCatalogue(library / "models").model("Llama-3.1-70B"),
          .slos = parse_slos("ttft<500ms@p99,tpot<50ms@p99", "slo"),
          .rate = 10,
          .objective = PlanObjective::cost,
          .hardware = {{.device = device, .most_devices = 16, .node_devices = 8, .node = hardware.node_with(device)}},
          .choices = {.engines = {"vllm", "sglang", "trtllm"},
                      .schemes = {std::nullopt, Scheme::fp8},
                      .kv_dtypes = {DType::bf16, DType::fp8},
                      .max_num_seqs = {0, 32, 64, 128, 256},
                      .max_num_batched_tokens = {0, 2048, 8192}},
          .drafts = {}};
}

Traffic chats() {
  const auto source = synthetic_load({.rate = 1, .count = 4000},
                                     lognormal_lengths({.mean = 1024, .sigma = 0.7}, {.mean = 256, .sigma = 0.7}, 0),
                                     {.tokens = 0, .count = 1}, 0);
  return Traffic(Traffic::taken_from(*source, 4000));
}

ServingFacts shipped_facts() {
  return {.device_models =
              [](const Device& device, const ParallelPlan&, const PlacementSpec&) {
                const fs::path calibrations = library / "kernels" / "calibrations";
                return DeviceModels{KernelPredictor(device, {}, std::make_shared<LearnedKernels>(device, calibrations)),
                                    nullptr};
              },
          .stack = [](std::string_view name) { return StackCatalogue(library / "stacks").stack(std::string(name)); }};
}

void judge_layouts(benchmark::State& state) {
  const ServingQuestion question = llama_70b_on_h100s();
  const Traffic traffic = chats();
  const ServingFacts facts = shipped_facts();
  const std::vector<ServingLayout> layouts = layout_space(question).layouts;
  for (auto _ : state) {
    const auto evaluator = threaded_evaluator(question, facts, traffic, static_cast<unsigned>(state.range(0)));
    benchmark::DoNotOptimize(evaluator->judge(layouts));
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(layouts.size()));
}
BENCHMARK(judge_layouts)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();

void simulate_layout(benchmark::State& state) {
  const ServingQuestion question = llama_70b_on_h100s();
  const Traffic traffic = chats();
  const ServingFacts facts = shipped_facts();
  EngineShelf shelf(question, facts, traffic);
  LayoutSimulator simulator(question, traffic, shelf);
  const ServingLayout layout{.pool = {.engine = {.device = "h100_sxm", .tensor = 8}}, .decode = {}};
  const auto effort = static_cast<Effort>(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(simulator.evaluate(layout, effort));
}
BENCHMARK(simulate_layout)
    ->Arg(static_cast<int>(Effort::quick))
    ->Arg(static_cast<int>(Effort::full))
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace foretoken

BENCHMARK_MAIN();
