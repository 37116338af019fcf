#include "accelerator/systolic/chip_layers.h"

#include <gtest/gtest.h>

#include "accelerator/systolic/chip_networks.h"
#include "accelerator/systolic/weight_fed.h"
#include "base/error.h"

namespace foretoken::chip_layers_test {

const std::filesystem::path chip_layers_data = std::filesystem::path(FORETOKEN_SOURCE_DIR) / "data" / "accelerators";

SystolicChip shipped_chip(const std::string& name) {
  return read_systolic_chip(chip_layers_data / "systolic" / (name + ".json"));
}

std::vector<NetworkLayer> shipped_network(const std::string& name) {
  const std::filesystem::path file = chip_layers_data / "networks" / (name + ".json");
  const Json document = read_json_file(file);
  return read_network_layers(JsonView(document, file.string()));
}

TEST(ChipLayers, a_layer_by_itself_is_the_program_of_that_operator) {
  const SystolicChip chip = shipped_chip("tpu_v3");
  const NetworkLayer gemm{.name = "gemm", .work = GemmSize{.m = 300, .n = 700, .k = 500}};
  const ChipNetworkRun run = run_chip_network(chip, std::span(&gemm, 1));
  const ChipCycles expected = chip_cycles(chip, gemm_work(300, 500, 700));
  EXPECT_DOUBLE_EQ(run.sum().total() + run.launch_cycles, expected.total());

  const NetworkLayer conv{.name = "conv",
                          .work = ConvShape{.batch = 2,
                                            .in_channels = 64,
                                            .out_channels = 96,
                                            .height = 56,
                                            .width = 56,
                                            .kernel_height = 3,
                                            .kernel_width = 3,
                                            .stride = 2,
                                            .padding = 1}};
  const ChipCycles program = chip_cycles(chip, convolution_work({.batch = 2,
                                                                 .height = 56,
                                                                 .width = 56,
                                                                 .input_channels = 64,
                                                                 .output_channels = 96,
                                                                 .kernel = 3,
                                                                 .stride = 2,
                                                                 .padding = 1}));
  EXPECT_DOUBLE_EQ(run_chip_network(chip, std::span(&conv, 1)).sum().matrix, program.matrix);
  EXPECT_DOUBLE_EQ(run_chip_network(chip, std::span(&conv, 1)).sum().memory, program.memory);
}

TEST(ChipLayers, images_with_few_channels_share_a_pass_of_the_array) {
  const SystolicChip chip = shipped_chip("tpu_v3");
  const auto cycles_of = [&](int64_t channels, int64_t batch) {
    const NetworkLayer conv{.name = "conv1",
                            .work = ConvShape{.batch = batch,
                                              .in_channels = channels,
                                              .out_channels = 64,
                                              .height = 224,
                                              .width = 224,
                                              .kernel_height = 7,
                                              .kernel_width = 7,
                                              .stride = 2,
                                              .padding = 3}};
    return run_chip_network(chip, std::span(&conv, 1)).sum().matrix;
  };
  const double outputs = 112.0 * 112.0;
  EXPECT_DOUBLE_EQ(cycles_of(3, 1), 49 * outputs) << "one product per place, as measured";
  EXPECT_DOUBLE_EQ(cycles_of(3, 8), 7 * 8 * outputs) << "one per row of the kernel";
  EXPECT_DOUBLE_EQ(cycles_of(64, 8), 49 * 8 * outputs) << "64 channels of 7 places are too many for the array";
  double before = 0;
  for (int64_t batch = 1; batch < 20; ++batch) {
    const double now = cycles_of(3, batch);
    EXPECT_GE(now, before) << batch << " images";
    EXPECT_LE(now, 49 * static_cast<double>(batch) * outputs);
    before = now;
  }
}

TEST(ChipLayers, a_list_of_layers_agrees_with_the_network_built_in_code) {
  const SystolicChip chip = shipped_chip("tpu_v3");
  const ChipNetworkRun run = run_chip_network(chip, shipped_network("resnet50"));
  const ChipCycles built = chip_cycles(chip, resnet_work(50, 1));
  EXPECT_DOUBLE_EQ(run.sum().matrix, built.matrix);
  EXPECT_NEAR(run.sum().memory, built.memory, 0.001 * built.memory);
  EXPECT_LT(run.sum().vector, built.vector) << "a list of layers has no pooling and no residuals";
}

TEST(ChipLayers, a_chip_fed_with_weights_is_bound_by_memory_until_the_batch_is_large) {
  const SystolicChip chip = shipped_chip("tpu_v1");
  const NetworkLayer layer{.name = "fc", .work = GemmSize{.m = 1, .n = 2048, .k = 2048}};
  const ChipNetworkRun small = run_chip_network(chip, std::span(&layer, 1));
  EXPECT_EQ(chip_bound(small.layers.front().cycles), ChipBound::memory);
  const NetworkLayer wide = with_batch(layer, 4096);
  const ChipNetworkRun large = run_chip_network(chip, std::span(&wide, 1));
  EXPECT_EQ(chip_bound(large.layers.front().cycles), ChipBound::arrays);
  EXPECT_GT(large.sum().total(), small.sum().total());
}

TEST(ChipLayers, equal_layers_take_as_many_times_the_cycles) {
  const SystolicChip chip = shipped_chip("tpu_v1");
  NetworkLayer layer{.name = "fc", .work = GemmSize{.m = 100, .n = 300, .k = 500}};
  const double once = run_chip_network(chip, std::span(&layer, 1)).sum().total();
  layer.count = 7;
  EXPECT_NEAR(run_chip_network(chip, std::span(&layer, 1)).sum().total(), 7 * once, 1e-9 * once);
}

TEST(ChipLayers, a_chip_that_says_neither_is_refused) {
  SystolicChip chip = shipped_chip("tpu_v1");
  chip.non_matrix_share.reset();
  const NetworkLayer layer{.name = "fc", .work = GemmSize{.m = 1, .n = 1, .k = 1}};
  EXPECT_THROW(run_chip_network(chip, std::span(&layer, 1)), InputError);
}

}  // namespace foretoken::chip_layers_test
