#include "accelerator/workload/network_layer.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken::network_layer_test {

TEST(NetworkLayer, a_batch_multiplies_the_work_whatever_the_layer) {
  const NetworkLayer layers[] = {
      {.name = "conv", .work = ConvShape{.in_channels = 3, .out_channels = 8, .height = 9, .width = 9}},
      {.name = "product", .work = GemmSize{.m = 5, .n = 6, .k = 7}},
      {.name = "heads", .work = GemmSize{.m = 5, .n = 6, .k = 7, .batch = 4}}};
  for (const NetworkLayer& layer : layers) {
    EXPECT_EQ(operations(layer_problem(with_batch(layer, 3))), 3 * operations(layer_problem(layer))) << layer.name;
  }
}

TEST(NetworkLayer, a_batch_of_products_keeps_its_operands_apart) {
  const NetworkLayer heads{.name = "heads", .work = GemmSize{.m = 5, .n = 6, .k = 7, .batch = 4}};
  EXPECT_EQ(std::get<GemmSize>(with_batch(heads, 3).work), (GemmSize{.m = 5, .n = 6, .k = 7, .batch = 12}));
}

TEST(NetworkLayer, a_batch_beyond_what_is_counted_is_refused) {
  const NetworkLayer layer{.name = "product", .work = GemmSize{.m = 1 << 20, .n = 6, .k = 7}};
  EXPECT_NO_THROW(with_batch(layer, 1 << 10));
  EXPECT_THROW(with_batch(layer, (1 << 10) + 1), InputError);
}

TEST(NetworkLayer, dilation_is_refused_with_the_name_of_its_layer) {
  const NetworkLayer dilated{.name = "atrous", .work = ConvShape{.height = 9, .width = 9, .dilation = 2}};
  try {
    refuse_dilation(dilated);
    FAIL() << "dilation 2 should be refused";
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().source, "atrous");
  }
  EXPECT_NO_THROW(refuse_dilation({.name = "plain", .work = ConvShape{}}));
}

}  // namespace foretoken::network_layer_test
