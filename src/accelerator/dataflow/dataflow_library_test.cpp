#include "accelerator/dataflow/dataflow_library.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "accelerator/dataflow/test_support.h"
#include "base/error.h"
#include "base/random.h"

namespace foretoken::dataflow_library_test {

constexpr DataflowHardware array{.num_pes = 256, .noc_bandwidth = 1000, .offchip_bandwidth = 50};

std::vector<NamedDataflow> shipped_dataflows() {
  return read_dataflow_library(std::filesystem::path(FORETOKEN_SOURCE_DIR) / "data/accelerators/dataflows");
}

DataflowLayer layer_of(int64_t filters, int64_t channels, int64_t window, int64_t rows, int64_t stride) {
  using enum LayerDim;
  DataflowLayer layer{.name = "layer", .stride_y = stride, .stride_x = stride};
  layer.sizes[K] = filters;
  layer.sizes[C] = channels;
  layer.sizes[R] = layer.sizes[S] = window;
  layer.sizes[Y] = layer.sizes[X] = rows;
  return layer;
}

DataflowCost physical_cost(const DataflowLayer& layer, const NamedDataflow& dataflow,
                           const DataflowHardware& hardware) {
  return analyse_dataflow(layer, directives_for(layer, dataflow), hardware, DataflowReading::physical, dataflow.name);
}

int64_t words(const DataflowLayer& layer, std::span<const LayerDim> tensor) {
  int64_t product = 1;
  for (const LayerDim dim : tensor) product *= layer.sizes[dim];
  return product;
}

TEST(DataflowLibrary, every_dataflow_does_each_multiplication_of_any_layer_once_and_reads_each_number) {
  RandomStream random(1, "layers");
  const std::vector<NamedDataflow> library = shipped_dataflows();
  for (int round = 0; round < 200; ++round) {
    const int64_t window = 1 + static_cast<int64_t>(random.below(7));
    const DataflowLayer layer =
        layer_of(1 + static_cast<int64_t>(random.below(200)), 1 + static_cast<int64_t>(random.below(200)), window,
                 window + static_cast<int64_t>(random.below(60)), 1 + static_cast<int64_t>(random.below(3)));
    const DataflowLayer used = without_unused_input(layer);
    for (const NamedDataflow& dataflow : library) {
      const DataflowCost cost = physical_cost(layer, dataflow, array);
      EXPECT_EQ(cost.macs, mac_count(layer)) << dataflow.name << " round " << round;
      EXPECT_GE(cost.runtime_cycles * array.num_pes, cost.macs) << dataflow.name << " round " << round;
      EXPECT_GE(cost.input.l2_read, words(used, tensors_of(used).input)) << dataflow.name << " round " << round;
      EXPECT_GE(cost.filter.l2_read, words(used, tensors_of(used).filter)) << dataflow.name << " round " << round;
      EXPECT_GE(cost.output.l2_write, cost.output.l2_read) << dataflow.name << " round " << round;
      EXPECT_LE(cost.average_pes, static_cast<double>(array.num_pes)) << dataflow.name;
    }
  }
}

TEST(DataflowLibrary, a_gemm_runs_as_a_convolution_with_the_same_multiplications) {
  DataflowLayer gemm{.name = "gemm", .type = DataflowLayerType::gemm};
  gemm.sizes[LayerDim::M] = 128;
  gemm.sizes[LayerDim::N] = 96;
  gemm.sizes[LayerDim::K] = 512;
  const std::vector<TriedDataflow> ranked = rank_dataflows(gemm, shipped_dataflows(), array, DataflowObjective::cycles);
  EXPECT_EQ(ranked.size(), shipped_dataflows().size());
  for (const TriedDataflow& tried : ranked) EXPECT_EQ(tried.cost.macs, 128 * 96 * 512) << tried.name;
}

TEST(DataflowLibrary, the_best_dataflow_comes_first_whatever_is_asked_for) {
  const DataflowLayer layer = layer_of(64, 64, 3, 56, 1);
  const auto check = [&](DataflowObjective objective, auto figure) {
    const std::vector<TriedDataflow> ranked = rank_dataflows(layer, shipped_dataflows(), array, objective);
    for (size_t index = 1; index < ranked.size(); ++index) {
      EXPECT_LE(figure(ranked[index - 1].cost), figure(ranked[index].cost)) << ranked[index].name;
    }
  };
  check(DataflowObjective::cycles, [](const DataflowCost& cost) { return static_cast<double>(cost.runtime_cycles); });
  check(DataflowObjective::energy, dataflow_energy_nanojoules);
  check(DataflowObjective::energy_delay, [](const DataflowCost& cost) {
    return dataflow_energy_nanojoules(cost) * static_cast<double>(cost.runtime_cycles);
  });
}

TEST(DataflowLibrary, of_equally_fast_dataflows_the_one_with_less_energy_comes_first) {
  DataflowLayer gemm{.name = "gemm", .type = DataflowLayerType::gemm};
  for (const LayerDim dim : {LayerDim::M, LayerDim::N, LayerDim::K}) gemm.sizes[dim] = 64;
  const DataflowHardware hardware{.num_pes = 256};
  const std::vector<TriedDataflow> ranked =
      rank_dataflows(gemm, shipped_dataflows(), hardware, DataflowObjective::cycles);
  int ties = 0;
  for (size_t index = 1; index < ranked.size(); ++index) {
    const DataflowCost &before = ranked[index - 1].cost, &after = ranked[index].cost;
    if (before.runtime_cycles != after.runtime_cycles) continue;
    ++ties;
    EXPECT_LE(dataflow_energy_nanojoules(before), dataflow_energy_nanojoules(after)) << ranked[index].name;
  }
  EXPECT_GT(ties, 0);
}

TEST(DataflowLibrary, dataflows_that_do_not_fit_come_last_with_the_reason) {
  const DataflowHardware tight{.num_pes = 40, .l1_bytes = 60, .l2_bytes = 1000};
  const std::vector<TriedDataflow> ranked =
      rank_dataflows(layer_of(64, 64, 3, 56, 1), shipped_dataflows(), tight, DataflowObjective::cycles);
  EXPECT_EQ(ranked.front().why_not, "");
  const auto kcp = std::ranges::find(ranked, "kcp_ws", &TriedDataflow::name);
  ASSERT_NE(kcp, ranked.end());
  EXPECT_NE(kcp->why_not.find("Cluster(64, P)"), std::string::npos) << kcp->why_not;
  bool fits = true;
  for (const TriedDataflow& tried : ranked) {
    EXPECT_TRUE(fits || !tried.why_not.empty());
    fits = tried.why_not.empty();
  }
}

TEST(DataflowLibrary, an_unknown_name_gets_the_nearest_one) {
  const std::vector<NamedDataflow> library = shipped_dataflows();
  EXPECT_EQ(find_dataflow(library, "rs").name, "rs");
  try {
    find_dataflow(library, "kcp_w");
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().suggestion, "kcp_ws");
  }
  EXPECT_THROW(read_dataflow_library("no/such/folder"), InputError);
}

TEST(DataflowLibrary, batches_and_groups_run_one_after_another) {
  DataflowLayer layer = layer_of(8, 8, 3, 16, 1);
  const NamedDataflow dataflow = shipped_dataflows().front();
  const DataflowCost one = physical_cost(layer, dataflow, array);
  layer.sizes[LayerDim::N] = 5;
  const DataflowCost five = physical_cost(layer, dataflow, array);
  EXPECT_EQ(five.macs, 5 * one.macs);
  EXPECT_EQ(five.l1_bytes, one.l1_bytes);
}

}  // namespace foretoken::dataflow_library_test
