#include "accelerator/dataflow/dataflow_network.h"

#include <gtest/gtest.h>

#include "accelerator/dataflow/dataflow_library.h"
#include "accelerator/dataflow/test_support.h"
#include "base/error.h"

namespace foretoken::dataflow_network_test {

std::vector<NetworkLayer> layers_of_every_kind() {
  return {{.name = "padded",
           .work = ConvShape{.batch = 2,
                             .in_channels = 3,
                             .out_channels = 8,
                             .height = 24,
                             .width = 20,
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
                             .groups = 16}},
          {.name = "grouped",
           .work = ConvShape{.in_channels = 16,
                             .out_channels = 32,
                             .height = 14,
                             .width = 14,
                             .kernel_height = 3,
                             .kernel_width = 3,
                             .padding = 1,
                             .groups = 4}},
          {.name = "product", .work = GemmSize{.m = 5, .n = 6, .k = 7}},
          {.name = "heads", .work = GemmSize{.m = 5, .n = 6, .k = 7, .batch = 4}}};
}

TEST(DataflowNetwork, a_layer_keeps_its_multiplications) {
  for (const NetworkLayer& layer : layers_of_every_kind()) {
    EXPECT_EQ(static_cast<double>(mac_count(dataflow_layer(layer))), operations(layer_problem(layer))) << layer.name;
  }
}

TEST(DataflowNetwork, each_kind_of_layer_runs_with_a_shipped_dataflow_and_does_all_its_work) {
  const auto library = read_dataflow_library(FORETOKEN_SOURCE_DIR "/data/accelerators/dataflows");
  for (const NetworkLayer& layer : layers_of_every_kind()) {
    const TriedDataflow tried = try_dataflow(dataflow_layer(layer), find_dataflow(library, "ykp_os"), {.num_pes = 64},
                                             DataflowReading::physical);
    EXPECT_EQ(tried.why_not, "") << layer.name;
    EXPECT_EQ(static_cast<double>(tried.cost.macs), operations(layer_problem(layer))) << layer.name;
  }
}

TEST(DataflowNetwork, dilation_is_refused) {
  EXPECT_THROW(dataflow_layer({.name = "atrous", .work = ConvShape{.height = 9, .width = 9, .dilation = 2}}),
               InputError);
}

}  // namespace foretoken::dataflow_network_test
