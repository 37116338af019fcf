// How long one prediction of a collective takes by formula, up to 100,000 ranks.
#include <benchmark/benchmark.h>

#include <filesystem>

#include "hardware/catalogue.h"
#include "network/collective_estimate.h"

namespace foretoken {
namespace {

CollectiveModel model_of(int nodes) {
  const HardwareCatalogue hardware(std::filesystem::path(FORETOKEN_SOURCE_DIR) / "data" / "hardware");
  return CollectiveModel(cluster_with_nodes(hardware.cluster("h100_ib_rail"), nodes), {});
}

// Every call is another size. All algorithms and protocols that suit are compared.
void closed_form_of(benchmark::State& state, CollectiveKind kind) {
  const int64_t ranks = state.range(0);
  const CollectiveModel model = model_of(static_cast<int>(ranks / 8));
  CollectiveRequest request{.kind = kind, .group = ProcessGroup::strided(0, ranks), .choice = {.algorithm = "best"}};
  for (auto _ : state) {
    request.bytes += 1024;
    benchmark::DoNotOptimize(model.estimate(request).seconds.value);
  }
}

// A list of devices is looked at one by one.
void closed_form_of_a_list(benchmark::State& state) {
  const int64_t ranks = state.range(0);
  const CollectiveModel model = model_of(static_cast<int>(ranks / 8));
  std::vector<int32_t> devices;
  for (int64_t rank = 0; rank < ranks; ++rank) devices.push_back(static_cast<int32_t>(rank));
  CollectiveRequest request{.group = ProcessGroup::of(devices), .choice = {.algorithm = "best"}};
  for (auto _ : state) {
    request.bytes += 1024;
    benchmark::DoNotOptimize(model.estimate(request).seconds.value);
  }
}

BENCHMARK_CAPTURE(closed_form_of, all_reduce, CollectiveKind::all_reduce)->Arg(64)->Arg(1024)->Arg(100'000);
BENCHMARK_CAPTURE(closed_form_of, all_to_all, CollectiveKind::all_to_all)->Arg(64)->Arg(100'000);
BENCHMARK_CAPTURE(closed_form_of, all_gather, CollectiveKind::all_gather)->Arg(64)->Arg(100'000);
BENCHMARK(closed_form_of_a_list)->Arg(1024)->Arg(100'000);

}  // namespace
}  // namespace foretoken

BENCHMARK_MAIN();
