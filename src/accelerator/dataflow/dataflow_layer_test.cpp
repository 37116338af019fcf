#include "accelerator/dataflow/dataflow_layer.h"

#include <gtest/gtest.h>

#include "accelerator/dataflow/test_support.h"
#include "base/error.h"

namespace foretoken::dataflow_layer_test {

DataflowLayer strided_layer(int64_t rows, int64_t window, int64_t stride) {
  using enum LayerDim;
  DataflowLayer layer{.name = "layer", .stride_y = stride, .stride_x = 1};
  for (const LayerDim dim : {K, C, S, X}) layer.sizes[dim] = 4;
  layer.sizes[Y] = rows;
  layer.sizes[R] = window;
  return layer;
}

TEST(DataflowLayer, leaving_out_unused_input_keeps_the_multiplications) {
  for (int64_t rows = 1; rows < 20; ++rows) {
    for (int64_t window = 1; window <= rows; ++window) {
      for (int64_t stride = 1; stride < 6; ++stride) {
        const DataflowLayer layer = strided_layer(rows, window, stride);
        const DataflowLayer used = without_unused_input(layer);
        EXPECT_EQ(mac_count(used), mac_count(layer));
        EXPECT_LE(used.sizes[LayerDim::Y], rows);
        EXPECT_EQ((used.sizes[LayerDim::Y] - window) % used.stride_y, 0);
      }
    }
  }
}

TEST(DataflowLayer, products_of_matrices_become_convolutions_with_the_same_multiplications) {
  using enum LayerDim;
  DataflowLayer layer{.name = "bmm", .type = DataflowLayerType::bmm};
  layer.sizes[B] = 3;
  layer.sizes[M] = 5;
  layer.sizes[N] = 7;
  layer.sizes[K] = 11;
  EXPECT_EQ(mac_count(as_convolution(layer)), 3 * 5 * 7 * 11);
  EXPECT_NO_THROW(check_layer(as_convolution(layer), "test", 1));
  layer.type = DataflowLayerType::gemm;
  layer.sizes[B] = 0;
  EXPECT_EQ(mac_count(as_convolution(layer)), 5 * 7 * 11);
  EXPECT_NO_THROW(check_layer(as_convolution(layer), "test", 1));
}

TEST(DataflowLayer, every_type_has_a_name_that_finds_it) {
  for (const std::string& name : layer_type_names()) {
    ASSERT_TRUE(layer_type_named(name)) << name;
    EXPECT_EQ(layer_type_name(*layer_type_named(name)), name);
  }
  for (const LayerDim dim : all_layer_dims) EXPECT_EQ(layer_dim_named(layer_dim_name(dim)), dim);
}

TEST(DataflowLayer, one_too_large_for_counts_is_refused) {
  DataflowLayer layer = strided_layer(8, 3, 1);
  EXPECT_NO_THROW(check_layer(layer, "test", 1));
  layer.sizes[LayerDim::K] = layer.sizes[LayerDim::C] = 1'000'000'000;
  EXPECT_THROW(check_layer(layer, "test", 1), InputError);
}

}  // namespace foretoken::dataflow_layer_test
