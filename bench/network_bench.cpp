// How fast the flow level is: many collectives at once on a fat tree of three levels.
#include <benchmark/benchmark.h>

#include "network/flow/flow_simulator.h"
#include "network/topology/topology_text.h"

namespace foretoken {
namespace {

constexpr int32_t devices = 16384, jobs = 64, ranks = devices / jobs;

// Neighbours in rank order are neighbours in the network (packed), or in another leaf (spread).
int32_t device_of(int32_t job, int32_t rank, bool spread) {
  return spread ? rank * jobs + job : job * ranks + rank;
}

// 2(n-1)/n of a buffer of 1 GB over every link of the ring.
TransferPlan ring_all_reduce(int32_t job, bool spread) {
  Stage stage{.messages = 2 * (ranks - 1)};
  for (int32_t rank = 0; rank < ranks; ++rank) {
    stage.transfers.push_back({device_of(job, rank, spread), device_of(job, (rank + 1) % ranks, spread),
                               2e9 * (ranks - 1) / ranks + job});  // ends at 64 different times
  }
  return {.stages = {std::move(stage)}};
}

TransferPlan all_to_all(int32_t job, bool spread) {
  Stage stage{.messages = ranks - 1};
  for (int32_t to = 0; to < ranks; ++to) {
    for (int32_t from = 0; from < ranks; ++from) {
      if (from == to) continue;
      stage.transfers.push_back({device_of(job, from, spread), device_of(job, to, spread), 4e6 + job});
    }
  }
  return {.stages = {std::move(stage)}};
}

// 8 stages with a partner at twice the distance each, half the bytes each.
TransferPlan halving(int32_t job, bool spread) {
  TransferPlan plan;
  double bytes = 5e8 + job;
  for (int32_t distance = ranks / 2; distance >= 1; distance /= 2, bytes /= 2) {
    Stage& stage = plan.stages.emplace_back();
    for (int32_t rank = 0; rank < ranks; ++rank) {
      stage.transfers.push_back({device_of(job, rank, spread), device_of(job, rank ^ distance, spread), bytes});
    }
  }
  return plan;
}

constexpr const char* fat_tree = "fat_tree:32x16x32@50GB/s,500ns";

void concurrent_collectives(benchmark::State& state, TransferPlan (*plan_of)(int32_t, bool), bool spread,
                            LinkRouting routing, const char* network) {
  const Topology topology = parse_topology(network);
  std::vector<TransferPlan> plans;
  for (int32_t job = 0; job < jobs; ++job) plans.push_back(plan_of(job, spread));
  for (auto _ : state) {
    FlowSimulator simulator(topology, {.routing = routing});
    for (const TransferPlan& plan : plans) simulator.start(plan, 0);
    while (!simulator.advance().empty()) {
    }
    benchmark::DoNotOptimize(simulator.now());
  }
  state.SetLabel(network);
}

#define FORETOKEN_BENCHMARK(name, ...) \
  BENCHMARK_CAPTURE(concurrent_collectives, name, __VA_ARGS__)->Unit(benchmark::kMillisecond)

FORETOKEN_BENCHMARK(ring_packed_ecmp, ring_all_reduce, false, LinkRouting::ecmp, fat_tree);
FORETOKEN_BENCHMARK(ring_spread_ecmp, ring_all_reduce, true, LinkRouting::ecmp, fat_tree);
FORETOKEN_BENCHMARK(ring_spread_adaptive, ring_all_reduce, true, LinkRouting::adaptive, fat_tree);
FORETOKEN_BENCHMARK(halving_spread_ecmp, halving, true, LinkRouting::ecmp, fat_tree);
FORETOKEN_BENCHMARK(all_to_all_packed_ecmp, all_to_all, false, LinkRouting::ecmp, fat_tree);
FORETOKEN_BENCHMARK(all_to_all_spread_ecmp, all_to_all, true, LinkRouting::ecmp, fat_tree);
FORETOKEN_BENCHMARK(ring_spread_rails, ring_all_reduce, true, LinkRouting::ecmp,
                    "rail:8x32x64@50GB/s,500ns,node_bandwidth=450GB/s");
FORETOKEN_BENCHMARK(ring_spread_torus, ring_all_reduce, true, LinkRouting::ecmp, "torus:32x32x16@50GB/s,500ns");
FORETOKEN_BENCHMARK(ring_spread_dragonfly, ring_all_reduce, true, LinkRouting::ecmp, "dragonfly:8x16x128@50GB/s,500ns");

void build_topology(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(parse_topology(fat_tree).node_count());
}
BENCHMARK(build_topology)->Unit(benchmark::kMillisecond);

// Point-to-point sends of independent pairs: every send is one flow, and rates change at every start and end.
void random_sends(benchmark::State& state) {
  const Topology topology = parse_topology("fat_tree:32x16x2@50GB/s,500ns");
  for (auto _ : state) {
    FlowSimulator simulator(topology);
    uint64_t number = 1;
    for (int64_t i = 0; i < state.range(0); ++i) {
      number = number * 6364136223846793005U + 1442695040888963407U;
      const auto from = static_cast<int32_t>((number >> 20) % 1024), to = static_cast<int32_t>((number >> 40) % 1024);
      simulator.start({.stages = {{.transfers = {{from, to, 1e6}}}}}, 1'000'000 * i);
    }
    while (!simulator.advance().empty()) {
    }
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(random_sends)->Arg(10000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace foretoken

BENCHMARK_MAIN();
