// How fast serving runs are simulated. With FORETOKEN_DATA set also the measured and VIDUR's runs.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/csv.h"
#include "base/random.h"
#include "compose/stack.h"
#include "hardware/catalogue.h"
#include "kernel/kernel.h"
#include "kernel/learned.h"
#include "model/catalogue.h"
#include "serving/simulation/simulation.h"
#include "serving/steps/composed_steps.h"
#include "serving/steps/op_tables.h"
#include "serving/steps/vidur_tables.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

const fs::path library = FORETOKEN_SOURCE_DIR "/data";

Picoseconds picoseconds(double seconds) {
  return std::llround(seconds * 1e12);
}

std::unique_ptr<StepTimes> llama_8b_on_h100() {
  const HardwareCatalogue hardware(library / "hardware");
  const Device device = hardware.device("h100_sxm");
  const fs::path calibrations = library / "kernels" / "calibrations";
  return compose_steps(
      {.model = ModelCatalogue(library / "models").model("Llama-3.1-8B"),
       .plan = {},
       .models = {KernelPredictor(device, {}, std::make_shared<LearnedKernels>(device, calibrations)), nullptr},
       .stack = StackCatalogue(library / "stacks").stack("vllm")});
}

// Poisson arrivals of the two Azure services of 2023 (Splitwise, ISCA 2024, figure 3), half each: conversation with
// median prompt 1020 and output 129 tokens, coding with 1500 and 13. Never holds more than one request.
class AzureMix final : public RequestSource {
 public:
  AzureMix(int64_t count, double rate) : count_(count), rate_(rate) { draw(); }
  std::optional<Picoseconds> next_arrival() override {
    if (next_.id == count_) return std::nullopt;
    return next_.arrival;
  }
  Request next() override {
    Request request = next_;
    draw();
    return request;
  }

 private:
  void draw() {
    now_ += stream_.exponential(1 / rate_);
    const bool coding = stream_.below(2) == 0;
    next_.id = made_++;
    next_.arrival = picoseconds(now_);
    next_.input_tokens = tokens(coding ? 1500 : 1020, 0.9, 7000);
    next_.output_tokens = tokens(coding ? 13 : 129, 0.9, 1000);
  }
  int64_t tokens(double median, double spread, double most) {
    return static_cast<int64_t>(std::clamp(stream_.lognormal(std::log(median), spread), 1.0, most));
  }
  RandomStream stream_{1, "azure mix"};
  int64_t count_, made_ = 0;
  double rate_, now_ = 0;
  Request next_;
};

class ListedRequests final : public RequestSource {
 public:
  explicit ListedRequests(const std::vector<Request>& requests) : requests_(&requests) {}
  std::optional<Picoseconds> next_arrival() override {
    if (next_ == requests_->size()) return std::nullopt;
    return (*requests_)[next_].arrival;
  }
  Request next() override { return (*requests_)[next_++]; }

 private:
  const std::vector<Request>* requests_;
  size_t next_ = 0;
};

class CountingObserver final : public RunObserver {
 public:
  void request_ended(const RequestRecord& record) override { tokens += record.output_tokens; }
  int64_t tokens = 0;
};

std::vector<Request> read_requests(const fs::path& file, const char* arrival, const char* input, const char* output) {
  CsvReader csv(file);
  std::vector<Request> requests;
  while (csv.next()) {
    requests.push_back({.id = static_cast<int64_t>(requests.size()),
                        .arrival = picoseconds(csv.number(csv.column(arrival))),
                        .input_tokens = csv.integer(csv.column(input)),
                        .output_tokens = csv.integer(csv.column(output)),
                        .prefix_blocks = {}});
  }
  std::sort(requests.begin(), requests.end(), [](const Request& a, const Request& b) { return a.arrival < b.arrival; });
  return requests;
}

void azure_mix(benchmark::State& state) {
  const auto times = llama_8b_on_h100();
  const ReplicaConfig replica{
      .options = {.max_num_batched_tokens = 8192, .max_num_seqs = 1024, .num_gpu_blocks = 27'000},
      .times = times.get()};
  SimulationTotals totals;
  for (auto _ : state) {
    AzureMix source(state.range(0), 10);
    CountingObserver observer;
    totals = simulate({.replicas = {replica}}, source, observer);
    benchmark::DoNotOptimize(observer.tokens);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.counters["decisions"] = static_cast<double>(totals.decisions);
  state.counters["steps"] = static_cast<double>(totals.steps);
}
BENCHMARK(azure_mix)->Arg(100'000)->Arg(10'000'000)->Unit(benchmark::kMillisecond)->Iterations(1);

void run_of_300_requests(benchmark::State& state) {
  const char* data = std::getenv("FORETOKEN_DATA");
  if (data == nullptr) return state.SkipWithError("FORETOKEN_DATA is not set");
  const fs::path folder = fs::path(data) / "serving/vllm_runs/RTX4090_Llama-3.1-8B";
  const auto requests = read_requests(folder / "requests.csv", "arrival_client_s", "input_tokens", "output_tokens");
  const auto times = read_op_tables(folder / "op_profile",
                                    {.layers = 32,
                                     .tensor = 1,
                                     .graph_sizes = StackCatalogue(library / "stacks").stack("vllm").graph_sizes,
                                     .processors = 128,
                                     .key_heads = 8});
  for (auto _ : state) {
    ListedRequests source(requests);
    CountingObserver observer;
    simulate({.replicas = {{.options = {.num_gpu_blocks = 2588}, .times = times.get()}}}, source, observer);
  }
}
BENCHMARK(run_of_300_requests)->Unit(benchmark::kMillisecond);

// VIDUR's own loop takes 3.1 CPU seconds for it.
void vidurs_2000_requests(benchmark::State& state) {
  const char* data = std::getenv("FORETOKEN_DATA");
  if (data == nullptr) return state.SkipWithError("FORETOKEN_DATA is not set");
  const fs::path folder = fs::path(data) / "vidur/replay";
  const auto requests = read_requests(folder / "requests/splitwiseconv_poisson6.45_seed42_n2000.csv", "arrived_at_s",
                                      "num_prefill_tokens", "num_decode_tokens");
  const auto times = read_vidur_tables(folder / "cost_tables/llama2-7b_a100_tp1", {.layers = 32});
  for (auto _ : state) {
    ListedRequests source(requests);
    CountingObserver observer;
    simulate({.replicas = {{.scheduler = "vidur_vllm",
                            .options = {.max_num_batched_tokens = 4096, .max_num_seqs = 128, .num_gpu_blocks = 7424},
                            .times = times.get()}}},
             source, observer);
  }
}
BENCHMARK(vidurs_2000_requests)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace foretoken

BENCHMARK_MAIN();
