// Replay of a large Chakra trace: training of 1,024 ranks (tensor groups of 8, data groups of 128), 1,000 nodes each.
#include <filesystem>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/file.h"
#include "network/chakra/chakra.h"
#include "network/replay/chakra_workload.h"
#include "network/replay/replay.h"
#include "network/transfer/collective.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

constexpr int64_t ranks = 1024, tensor = 8, layers = 166;

ChakraNode collective(uint64_t id, ChakraCollective kind, int64_t bytes, int64_t group, std::vector<uint64_t> waits) {
  return {.id = id,
          .name = "collective",
          .type = ChakraNodeType::collective,
          .data_dependencies = std::move(waits),
          .attributes = {chakra_boolean("is_cpu_op", false), chakra_integer("comm_type", static_cast<int64_t>(kind)),
                         chakra_integer("comm_size", bytes), chakra_text("pg_name", fmt::format("{}", group))}};
}

// Forward and backward of each layer with its all-reduce, and the gradients' reduce-scatter beside the backward pass.
ChakraTrace trace_of(int64_t rank) {
  ChakraTrace trace;
  uint64_t id = 0, last = 0;
  const int64_t tensor_group = rank / tensor, data_group = ranks / tensor + rank % tensor;
  const auto compute = [&](const char* name, uint64_t us) {
    trace.nodes.push_back({.id = ++id,
                           .name = name,
                           .type = ChakraNodeType::compute,
                           .data_dependencies = last == 0 ? std::vector<uint64_t>() : std::vector<uint64_t>{last},
                           .duration_micros = us,
                           .attributes = {chakra_boolean("is_cpu_op", false)}});
    last = id;
  };
  for (int64_t layer = 0; layer < layers; ++layer) {
    compute("attention", static_cast<uint64_t>(200 + (rank * 7 + layer * 3) % 11));
    compute("mlp", 400);
    trace.nodes.push_back(collective(++id, ChakraCollective::all_reduce, 1 << 25, tensor_group, {last}));
    last = id;
  }
  for (int64_t layer = 0; layer < layers; ++layer) {
    compute("backward", 1200);
    trace.nodes.push_back(collective(++id, ChakraCollective::all_reduce, 1 << 25, tensor_group, {last}));
    last = id;
    trace.nodes.push_back(collective(++id, ChakraCollective::reduce_scatter, 1 << 26, data_group, {last}));
  }
  return trace;
}

class Files {
 public:
  Files() : folder_(fs::temp_directory_path() / fmt::format("foretoken_replay_bench_{}", getpid())) {
    fs::create_directories(folder_);
    std::string groups = "{";
    for (int64_t rank = 0; rank < ranks; ++rank) write_file(chakra_path(prefix(), rank), chakra_text(trace_of(rank)));
    for (int64_t group = 0; group < ranks / tensor + tensor; ++group) {
      const bool is_data = group >= ranks / tensor;
      groups += fmt::format("{}\"{}\": [", group == 0 ? "" : ", ", group);
      for (int64_t i = 0; i < (is_data ? ranks / tensor : tensor); ++i) {
        groups +=
            fmt::format("{}{}", i == 0 ? "" : ", ", is_data ? i * tensor + group - ranks / tensor : group * tensor + i);
      }
      groups += "]";
    }
    write_file(group_file(), groups + "}");
  }
  ~Files() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;

  std::string prefix() const { return (folder_ / "run").string(); }
  fs::path group_file() const { return folder_ / "groups.json"; }

 private:
  fs::path folder_;
};

Seconds wire_seconds(const NetworkCall& call) {
  const CollectiveShape shape{.kind = call.kind, .ranks = static_cast<int64_t>(call.ranks.size()), .bytes = call.bytes};
  return wire_bytes(shape) / BytesPerSecond(50e9);
}

void read_and_replay(benchmark::State& state) {
  const Files files;
  size_t nodes = 0;
  for (auto _ : state) {
    const ReplayWorkload workload = read_chakra_workload(files.prefix(), {.group_file = files.group_file()});
    nodes = workload.node_count();
    benchmark::DoNotOptimize(replay(workload, *undisturbed_network(wire_seconds)).makespan);
  }
  state.counters["nodes"] = static_cast<double>(nodes);
}
BENCHMARK(read_and_replay)->Unit(benchmark::kMillisecond)->Iterations(3);

void replay_only(benchmark::State& state) {
  const Files files;
  const ReplayWorkload workload = read_chakra_workload(files.prefix(), {.group_file = files.group_file()});
  for (auto _ : state) benchmark::DoNotOptimize(replay(workload, *undisturbed_network(wire_seconds)).makespan);
}
BENCHMARK(replay_only)->Unit(benchmark::kMillisecond)->Iterations(3);

}  // namespace
}  // namespace foretoken

BENCHMARK_MAIN();
