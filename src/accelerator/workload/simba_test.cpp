// Simba's package of chiplets: what its mesh does to the layers of ResNet-50.
#include <gtest/gtest.h>

#include "accelerator/formats/designs.h"
#include "accelerator/formats/mapper_constraints.h"
#include "accelerator/workload/layer_list.h"
#include "accelerator/workload/network_map.h"

namespace foretoken::simba_test {

AcceleratorDesign simba(int64_t across, int64_t down) {
  AcceleratorDesign own = AcceleratorCatalogue(FORETOKEN_SOURCE_DIR "/data/accelerators").design("simba").design;
  const auto first = static_cast<size_t>(find_level(own.architecture, "chiplet"));
  for (size_t i = first; i < own.architecture.levels.size(); ++i) {
    AcceleratorLevel& level = own.architecture.levels[i];
    level.instances_x = level.instances_x / 6 * across;
    level.instances_y = level.instances_y / 6 * down;
  }
  return own;
}

Evaluation run(const AcceleratorDesign& design, const Problem& problem) {
  const MapperOptions options{.objective = {.first = MappingMetric::latency, .second = MappingMetric::energy},
                              .most_tries = 20'000};
  const MapperResult found =
      search_mappings(design.architecture, problem, design_constraints(design, problem), options);
  EXPECT_TRUE(found.best) << found.reason;
  return found.best->evaluation;
}

// res2 3x3 has 64 x 64 channels, res5 512 x 512.
const Problem early = convolution_problem(
    {.in_channels = 64, .out_channels = 64, .out_width = 56, .out_height = 56, .kernel_width = 3, .kernel_height = 3});
const Problem late = convolution_problem(
    {.in_channels = 512, .out_channels = 512, .out_width = 7, .out_height = 7, .kernel_width = 3, .kernel_height = 3});

// Chiplets share out channels: 64 x 64 of them fill the 64 PEs of four chiplets, 512 x 512 all 576.
TEST(Simba, layers_of_few_channels_stop_at_a_few_chiplets_and_no_layer_scales_as_their_number) {
  const auto speedup = [](const Problem& problem, int64_t across, int64_t down) {
    return run(simba(1, 1), problem).latency_cycles() / run(simba(across, down), problem).latency_cycles();
  };
  const double early_4 = speedup(early, 2, 2), early_36 = speedup(early, 6, 6);
  const double late_4 = speedup(late, 2, 2), late_36 = speedup(late, 6, 6);
  EXPECT_GT(late_4, 2);
  EXPECT_GT(early_4, 1.5);
  EXPECT_LT(early_36, 1.2 * early_4);
  EXPECT_GT(late_36, 1.5 * late_4);
  EXPECT_LT(late_36, 0.9 * 36);
}

TEST(Simba, one_chiplet_crosses_no_package_links) {
  const Evaluation alone = run(simba(1, 1), late);
  const AcceleratorDesign own = simba(1, 1);
  const auto package = static_cast<size_t>(find_level(own.architecture, "global_buffers"));
  EXPECT_EQ(alone.levels[package].mesh_words, 0);
  EXPECT_EQ(alone.levels[package].mesh_cycles, 0);
  const Evaluation all = run(simba(6, 6), late);
  EXPECT_GT(all.levels[package].mesh_words, 0);
  EXPECT_GT(all.levels[package].network_pj, 0);
}

TEST(Simba, slower_package_links_are_never_faster) {
  double before = 0;
  for (const double slowdown : {1.0, 4.0, 16.0, 64.0}) {
    AcceleratorDesign own = simba(6, 6);
    own.architecture.levels[find_level(own.architecture, "global_buffers")].mesh.words_per_cycle /= slowdown;
    const double latency = run(own, early).latency_cycles();
    EXPECT_GE(latency, 0.98 * before) << slowdown;  // searches end near each other, not on the same mapping
    before = latency;
  }
}

// Shao et al., MICRO 2019: 0.50 ms for an image on all chiplets. Six tenths of our time is the first layer, whose three
// channels keep 192 multipliers busy.
TEST(Simba, resnet50_takes_what_silicon_takes_within_a_quarter) {
  const AcceleratorDesign own = simba(6, 6);
  const Json document = read_json_file(FORETOKEN_SOURCE_DIR "/data/accelerators/networks/resnet50.json");
  const std::vector<AcceleratorLayer> layers = accelerator_layers(read_network_layers(JsonView(document, "resnet50")));
  const MapperOptions options{.objective = {.first = MappingMetric::latency, .second = MappingMetric::energy},
                              .most_tries = 5'000};
  const NetworkMap map = map_network(
      own.architecture, layers, [&](const Problem& problem) { return design_constraints(own, problem); }, options);
  EXPECT_NEAR(map.totals.latency_cycles / own.architecture.clock_hz, 0.50e-3, 0.25 * 0.50e-3);
}

// MobileNetV2's 3x3 windows at 14 x 14: each of its 384 channels is a group. The array spreads channels alone, so at
// most 384 multipliers work; 384 = 6 x 8 x 8 fits its grids. Then compute takes 14 x 14 x 3 x 3 = 1764 cycles and all
// of it 1952. On half of them compute alone would take 3528.
TEST(Simba, depthwise_channels_keep_one_multiplier_busy_each) {
  const Evaluation found = run(simba(6, 6), convolution_problem({.in_channels = 384,
                                                                 .out_channels = 384,
                                                                 .out_width = 14,
                                                                 .out_height = 14,
                                                                 .kernel_width = 3,
                                                                 .kernel_height = 3,
                                                                 .groups = 384}));
  EXPECT_EQ(found.levels.back().instances, 384);
}

TEST(Simba, a_multiplier_spreads_channels_alone) {
  const AcceleratorDesign own = simba(6, 6);
  const auto level = static_cast<size_t>(find_level(own.architecture, "accumulation_buffer"));
  EXPECT_EQ(dimensions_allowed(own.tensors[level], early),
            1U << find_dimension(early, "C") | 1U << find_dimension(early, "M"));
  const Problem product = gemm_problem({.m = 8, .n = 8, .k = 8});
  EXPECT_EQ(dimensions_allowed(own.tensors[level], product),
            1U << find_dimension(product, "K") | 1U << find_dimension(product, "N"));
}

}  // namespace foretoken::simba_test
