#include "accelerator/dataflow/dataflow_analysis.h"

#include <gtest/gtest.h>

#include "accelerator/dataflow/dataflow_file.h"
#include "base/error.h"

namespace foretoken::dataflow_analysis_test {

MappedLayer analysed_layer(const std::string& sizes, const std::string& dataflow) {
  const std::string text =
      "Network n { Layer l { Type: CONV Dimensions { " + sizes + " } Dataflow { " + dataflow + " } } }";
  return parse_mapped_network(text, "test").layers.front();
}

DataflowCost cost_of(const MappedLayer& mapped, const DataflowHardware& hardware,
                     DataflowReading reading = DataflowReading::physical) {
  return analyse_dataflow(mapped.layer, mapped.dataflow, hardware, reading, "test");
}

const char* const small_sizes = "K: 8, C: 4, R: 3, S: 3, Y: 10, X: 10";
const char* const filters_in_parallel =
    "SpatialMap(1,1) K; TemporalMap(1,1) C; TemporalMap(Sz(R),1) Y; TemporalMap(Sz(S),1) X;";

TEST(DataflowAnalysis, one_level_counts_by_hand) {
  // Eight filters over four elements: two rounds of 4 channels x 8 x 8 outputs, each nine multiplications long.
  const DataflowCost cost = cost_of(analysed_layer(small_sizes, filters_in_parallel), {.num_pes = 4});
  EXPECT_EQ(cost.macs, 8 * 4 * 9 * 64);
  EXPECT_EQ(cost.runtime_cycles, 2 * 4 * 64 * 9 + 1);
  EXPECT_EQ(cost.average_pes, 4);
  EXPECT_EQ(cost.filter.l2_read, 8 * 4 * 9);  // stays while the output is scanned
  // A row of eight windows takes 9 + 7 x 3 numbers, once for each of 8 rows, 4 channels and 2 rounds.
  EXPECT_EQ(cost.input.l2_read, 2 * 4 * 8 * (9 + 7 * 3));
  EXPECT_EQ(cost.output.l2_write, 8 * 4 * 64);  // partial sums leave for every channel
  EXPECT_EQ(cost.l1_bytes, 2 * (9 + 9 + 9));
}

TEST(DataflowAnalysis, more_bandwidth_is_never_slower_and_less_latency_neither) {
  const MappedLayer mapped = analysed_layer(small_sizes, filters_in_parallel);
  int64_t before = cost_of(mapped, {.num_pes = 4, .noc_bandwidth = 1, .offchip_bandwidth = 1}).runtime_cycles;
  for (int64_t bandwidth = 2; bandwidth < 200; bandwidth *= 2) {
    DataflowHardware hardware{.num_pes = 4, .noc_bandwidth = bandwidth, .offchip_bandwidth = bandwidth};
    const int64_t cycles = cost_of(mapped, hardware).runtime_cycles;
    EXPECT_LE(cycles, before) << bandwidth;
    before = cycles;
    hardware.noc_latency_cycles = 20;
    EXPECT_GE(cost_of(mapped, hardware).runtime_cycles, cycles) << bandwidth;
  }
}

TEST(DataflowAnalysis, more_elements_are_never_slower) {
  const MappedLayer mapped = analysed_layer(small_sizes, filters_in_parallel);
  int64_t before = cost_of(mapped, {.num_pes = 1}).runtime_cycles;
  for (int64_t elements = 2; elements <= 16; ++elements) {
    const int64_t cycles = cost_of(mapped, {.num_pes = elements}).runtime_cycles;
    EXPECT_LE(cycles, before) << elements;
    before = cycles;
  }
}

TEST(DataflowAnalysis, readings_agree_where_nothing_is_odd) {
  const MappedLayer mapped = analysed_layer(small_sizes, filters_in_parallel);
  const DataflowCost maestro = cost_of(mapped, {.num_pes = 4}, DataflowReading::maestro);
  const DataflowCost physical = cost_of(mapped, {.num_pes = 4});
  EXPECT_EQ(maestro.macs, physical.macs);
  EXPECT_EQ(maestro.runtime_cycles, physical.runtime_cycles);
  EXPECT_EQ(maestro.l2_bytes, physical.l2_bytes);
}

TEST(DataflowAnalysis, an_input_that_starts_over_is_loaded_again_but_in_maestro) {
  // Filters outside, rows inside: each next filter needs the first window again.
  const MappedLayer mapped = analysed_layer(
      small_sizes, "TemporalMap(1,1) K; TemporalMap(Sz(R),1) Y; TemporalMap(Sz(S),1) X; SpatialMap(1,1) C;");
  const int64_t physical = cost_of(mapped, {.num_pes = 4}).input.l2_read;
  const int64_t maestro = cost_of(mapped, {.num_pes = 4}, DataflowReading::maestro).input.l2_read;
  EXPECT_EQ(physical - maestro, 7 * 4 * 9);
}

TEST(DataflowAnalysis, less_than_a_window_and_two_maps_of_a_dimension_are_refused_but_in_maestro) {
  for (const char* dataflow :
       {"SpatialMap(1,1) K; TemporalMap(2,1) Y;", "SpatialMap(1,1) K; TemporalMap(4,4) K; TemporalMap(Sz(R),1) Y;"}) {
    const MappedLayer mapped = analysed_layer(small_sizes, dataflow);
    EXPECT_THROW(cost_of(mapped, {.num_pes = 4}), InputError) << dataflow;
    EXPECT_NO_THROW(cost_of(mapped, {.num_pes = 4}, DataflowReading::maestro)) << dataflow;
  }
}

TEST(DataflowAnalysis, directives_that_do_not_fit_are_refused) {
  for (const char* dataflow :
       {"TemporalMap(1,1) K;", "SpatialMap(1,1) N;", "SpatialMap(1,1) K; Cluster(8,P); SpatialMap(1,1) C;",
        "SpatialMap(1,1) K; Cluster(2,P); TemporalMap(1,1) C;", "SpatialMap(Sz(R)-3,1) K;",
        "SpatialMap(1,1) K; SpatialMap(1,1) C; SpatialMap(1,1) Y;"}) {
    EXPECT_THROW(cost_of(analysed_layer(small_sizes, dataflow), {.num_pes = 4}), InputError) << dataflow;
  }
}

TEST(DataflowAnalysis, energy_is_the_sum_over_multiplications_and_buffers) {
  EXPECT_DOUBLE_EQ(dataflow_energy_nanojoules({.macs = 1000}), 0.23);
  EXPECT_DOUBLE_EQ(dataflow_energy_nanojoules({.input = {.l1_read = 600, .l1_write = 400}}), 0.23 * 1.68);
  EXPECT_DOUBLE_EQ(dataflow_energy_nanojoules({.output = {.l2_read = 400, .l2_write = 600}}), 0.23 * 18.61);
}

}  // namespace foretoken::dataflow_analysis_test
