#include "accelerator/systolic/systolic_network.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken::systolic_network_test {

double repeated_macs(const RepeatedSystolicLayer& one) {
  const GemmSize gemm = one.layer.gemm();
  return static_cast<double>(gemm.m * gemm.n * gemm.k * one.repeats);
}

TEST(SystolicNetwork, a_layer_keeps_its_multiplications) {
  const NetworkLayer layers[] = {{.name = "padded",
                                  .work = ConvShape{.batch = 2,
                                                    .in_channels = 3,
                                                    .out_channels = 8,
                                                    .height = 224,
                                                    .width = 200,
                                                    .kernel_height = 7,
                                                    .kernel_width = 5,
                                                    .stride = 2,
                                                    .padding = 3}},
                                 {.name = "depthwise",
                                  .work = ConvShape{.in_channels = 16,
                                                    .out_channels = 16,
                                                    .height = 14,
                                                    .width = 14,
                                                    .kernel_height = 3,
                                                    .kernel_width = 3,
                                                    .stride = 2,
                                                    .padding = 1,
                                                    .groups = 16},
                                  .count = 3},
                                 {.name = "heads", .work = GemmSize{.m = 5, .n = 6, .k = 7, .batch = 4}, .count = 2}};
  for (const NetworkLayer& layer : layers) {
    EXPECT_EQ(repeated_macs(systolic_layer(layer)), static_cast<double>(layer.count) * operations(layer_problem(layer)))
        << layer.name;
  }
}

TEST(SystolicNetwork, the_best_dataflow_is_never_slower_than_any) {
  const SystolicArray array{.rows = 8, .columns = 16};
  const SystolicLayer layer = as_layer({.m = 40, .n = 300, .k = 9});
  const SystolicLayerRun best = run_systolic_layer(array, layer, dataflows);
  for (const Dataflow dataflow : dataflows) {
    EXPECT_LE(best.cycles(), run_systolic_layer(array, layer, std::span(&dataflow, 1)).cycles());
  }
}

TEST(SystolicNetwork, a_layer_too_large_for_a_trace_still_has_its_cycles) {
  const SystolicArray array{.rows = 32, .columns = 32};
  const SystolicLayer layer = as_layer({.m = 65536, .n = 65536, .k = 65536});
  const SystolicLayerRun run = run_systolic_layer(array, layer, std::span(dataflows).first(1));
  EXPECT_FALSE(run.memory);
  EXPECT_EQ(run.cycles(), systolic_compute(array, layer.gemm()).cycles);
}

TEST(SystolicNetwork, any_grid_of_cores_is_no_slower_than_a_given_one) {
  const SystolicArray core{.rows = 16, .columns = 16};
  const SystolicLayer layer = as_layer({.m = 100, .n = 700, .k = 90});
  const CoresRun free = run_on_cores(core, layer, dataflows, {.cores = 8});
  for (const int64_t rows : {1, 2, 4, 8}) {
    EXPECT_LE(free.best.cycles, run_on_cores(core, layer, dataflows, {.cores = 8, .rows = rows}).best.cycles);
  }
  EXPECT_LE(free.best.cycles, free.one_core_cycles);
}

TEST(SystolicNetwork, dilation_is_refused) {
  const NetworkLayer dilated{.name = "atrous", .work = ConvShape{.height = 9, .width = 9, .dilation = 2}};
  EXPECT_THROW(systolic_layer(dilated), InputError);
}

TEST(SystolicNetwork, repeats_beyond_what_is_counted_are_refused) {
  const ConvShape grouped{.batch = 1 << 30, .in_channels = 1 << 30, .out_channels = 1 << 30, .groups = 1 << 30};
  EXPECT_THROW(systolic_layer({.name = "conv", .work = grouped, .count = 1 << 30}), InputError);
}

}  // namespace foretoken::systolic_network_test
