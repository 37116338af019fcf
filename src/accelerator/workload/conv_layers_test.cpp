#include "accelerator/workload/conv_layers.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken::conv_layers_test {

TEST(ConvLayers, a_layer_keeps_its_multiplications) {
  const NetworkLayer layers[] = {{.name = "grouped",
                                  .work = ConvShape{.batch = 2,
                                                    .in_channels = 8,
                                                    .out_channels = 12,
                                                    .height = 24,
                                                    .width = 20,
                                                    .kernel_height = 7,
                                                    .kernel_width = 5,
                                                    .stride = 2,
                                                    .padding = 3,
                                                    .groups = 4}},
                                 {.name = "product", .work = GemmSize{.m = 5, .n = 6, .k = 7}},
                                 {.name = "heads", .work = GemmSize{.m = 5, .n = 6, .k = 7, .batch = 4}}};
  for (const NetworkLayer& layer : layers) {
    EXPECT_EQ(conv_layer(layer).macs(), operations(layer_problem(layer))) << layer.name;
    EXPECT_NO_THROW(check_conv_layer(conv_layer(layer), "test")) << layer.name;
  }
}

TEST(ConvLayers, a_layer_writes_the_zeros_that_the_next_one_reads) {
  ConvLayer layers[] = {{.ifmap_zero_share = 0.1}, {.ifmap_zero_share = 0.5}, {.ifmap_zero_share = 0.7}};
  chain_zero_shares(layers);
  EXPECT_EQ(layers[0].ofmap_zero_share, 0.5);
  EXPECT_EQ(layers[1].ofmap_zero_share, 0.7);
  EXPECT_EQ(layers[2].ofmap_zero_share, 0.7);
  EXPECT_FALSE(layers[0].ifmap_compressed);
  EXPECT_TRUE(layers[1].ifmap_compressed);
}

TEST(ConvLayers, dilation_is_refused) {
  EXPECT_THROW(conv_layer({.name = "atrous", .work = ConvShape{.height = 9, .width = 9, .dilation = 2}}), InputError);
}

}  // namespace foretoken::conv_layers_test
