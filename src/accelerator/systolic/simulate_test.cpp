#include "accelerator/systolic/simulate.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"

namespace foretoken::simulate_test {

SystolicArray small_array(Dataflow dataflow) {
  return {.rows = 8,
          .columns = 4,
          .dataflow = dataflow,
          .input_sram_bytes = 1000,
          .weight_sram_bytes = 1000,
          .output_sram_bytes = 1000};
}

TEST(SimulateSystolic, without_a_bandwidth_reads_never_wait_and_everything_is_fetched_at_least_once) {
  RandomStream random(7, "systolic layers");
  for (int trial = 0; trial < 40; ++trial) {
    const auto size = [&](uint64_t most) { return static_cast<int64_t>(1 + random.below(most)); };
    const GemmSize gemm{.m = size(60), .n = size(60), .k = size(60)};
    for (const Dataflow dataflow : dataflows) {
      SystolicArray array = small_array(dataflow);
      array.output_sram_bytes = 1 << 20;
      const SystolicResult result = simulate_systolic(array, as_layer(gemm));
      EXPECT_EQ(result.stall_cycles, 0);
      EXPECT_EQ(result.total_cycles, result.compute.cycles);
      EXPECT_GE(result.inputs.dram_words, gemm.m * gemm.k);
      EXPECT_GE(result.weights.dram_words, gemm.k * gemm.n);
      EXPECT_LE(result.inputs.dram_words, result.inputs.sram_words);
      EXPECT_LE(result.weights.dram_words, result.weights.sram_words);
    }
  }
}

TEST(SimulateSystolic, an_operand_that_fits_in_half_of_its_sram_is_fetched_exactly_once) {
  const SystolicLayer layer{
      .input_height = 20, .input_width = 18, .filter_height = 3, .filter_width = 3, .channels = 4, .filters = 12};
  for (const Dataflow dataflow : dataflows) {
    SystolicArray array = small_array(dataflow);
    array.input_sram_bytes = array.weight_sram_bytes = 1 << 14;
    const SystolicResult result = simulate_systolic(array, layer);
    EXPECT_EQ(result.inputs.dram_words, 20 * 18 * 4) << dataflow_name(dataflow);
    EXPECT_EQ(result.weights.dram_words, 3 * 3 * 4 * 12) << dataflow_name(dataflow);
  }
}

TEST(SimulateSystolic, more_dram_bandwidth_is_never_slower_and_enough_of_it_never_stalls) {
  for (const Dataflow dataflow : dataflows) {
    SystolicArray array = small_array(dataflow);
    const SystolicLayer layer = as_layer({.m = 90, .n = 50, .k = 70});
    int64_t before = simulate_systolic(array, layer).compute.cycles * 100;  // physical stalls
    for (const int64_t words : {1, 2, 5, 10, 50, 500}) {
      array.dram = DramWordsPerCycle{.inputs = words, .weights = words, .outputs = words};
      const SystolicResult result = simulate_systolic(array, layer);
      EXPECT_LE(result.physical_stall_cycles, before) << dataflow_name(dataflow) << " at " << words;
      EXPECT_EQ(result.total_cycles, result.compute.cycles + result.stall_cycles);
      before = result.physical_stall_cycles;
    }
    array.input_sram_bytes = array.weight_sram_bytes = array.output_sram_bytes = 1 << 16;
    EXPECT_EQ(simulate_systolic(array, layer).stall_cycles, 0) << dataflow_name(dataflow);
  }
}

TEST(SimulateSystolic, weights_that_are_used_once_arrive_at_the_speed_of_the_bus) {
  SystolicArray array = small_array(Dataflow::weight_stationary);
  array.weight_sram_bytes = 100 * array.rows * array.columns;  // a transfer is then one fold
  array.dram = DramWordsPerCycle{.inputs = 500, .weights = 1, .outputs = 500};
  const SystolicResult result = simulate_systolic(array, as_layer({.m = 1, .n = 40, .k = 160}));
  const int64_t words = 40 * 160;
  const int64_t there_before = array.weight_sram_bytes / 2;
  EXPECT_GT(result.total_cycles, words - 2 * there_before);
  EXPECT_LT(result.total_cycles, words + there_before);
}

TEST(SimulateSystolic, traces_beyond_the_limit_and_tiny_srams_are_refused_while_cycles_are_not) {
  const GemmSize large{.m = 1 << 15, .n = 1 << 10, .k = 1 << 15};
  EXPECT_GT(systolic_compute({}, large).cycles, 0);
  EXPECT_THROW(simulate_systolic({}, as_layer(large)), InputError);
  EXPECT_THROW(simulate_systolic({.input_sram_bytes = 99}, as_layer({})), InputError);
  EXPECT_THROW(simulate_systolic({}, {.input_height = 2, .filter_height = 3}), InputError);
}

}  // namespace foretoken::simulate_test
