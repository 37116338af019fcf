#include "kernel/edge/edge_laws.h"

#include <gtest/gtest.h>

#include "kernel/edge/edge_test_sweep.h"

namespace foretoken::edge_laws_test {

using namespace test_support;

std::vector<double> amounts(const EdgeKernel& kernel) {
  const EdgeLaw& law = edge_law(kernel.kind);
  std::vector<double> result(law.prices.size(), -1);
  law.amounts(kernel, {}, result);
  return result;
}

// The kernel with each of its sizes a little larger, one at a time.
std::vector<EdgeKernel> larger_kernels(const EdgeKernel& kernel) {
  std::vector<EdgeKernel> result;
  const auto grow = [&](auto sizes, auto... members) {
    const auto with_one_more = [&](auto member) {
      auto larger = sizes;
      larger.*member += 1;
      result.push_back({.kind = kernel.kind, .sizes = larger});
    };
    (with_one_more(members), ...);
  };
  if (const auto* c = std::get_if<ConvolutionSizes>(&kernel.sizes)) {
    using C = ConvolutionSizes;
    grow(*c, &C::batch, &C::in_height, &C::in_width, &C::out_height, &C::out_width);
    if (c->kernel_height > 1) grow(*c, &C::kernel_height, &C::kernel_width);
    if (c->groups == 1) grow(*c, &C::in_channels, &C::out_channels);
  } else if (const auto* p = std::get_if<ProductSizes>(&kernel.sizes)) {
    grow(*p, &ProductSizes::batch, &ProductSizes::m, &ProductSizes::k, &ProductSizes::n);
  } else if (const auto* t = std::get_if<TensorSizes>(&kernel.sizes)) {
    grow(*t, &TensorSizes::elements, &TensorSizes::rows, &TensorSizes::outputs, &TensorSizes::window);
  }
  return result;
}

std::vector<EdgeKernel> kernels_of_all_kinds() {
  std::vector<EdgeKernel> kernels = swept_kernels();
  for (const std::string& name : edge_kind_names()) {
    const EdgeKernelKind kind = edge_kind_from_name(name).value();
    const TensorSizes sizes{.elements = 9000, .rows = 30, .outputs = 3000, .window = 3, .swaps_last_axes = true};
    if (edge_law(kind).name != edge_law(EdgeKernelKind::empty).name && kind >= EdgeKernelKind::add)
      kernels.push_back(edge_tensor(kind, sizes));
  }
  return kernels;
}

TEST(EdgeLaws, every_kernel_has_work_of_some_kind_and_none_of_it_negative) {
  for (const EdgeKernel& kernel : kernels_of_all_kinds()) {
    const std::vector<double> own = amounts(kernel);
    EXPECT_EQ(own.front(), 1) << "one call";
    for (const double amount : own) EXPECT_GE(amount, 0) << edge_kind_name(kernel.kind);
    EXPECT_LE(own.size(), most_edge_prices);
  }
}

TEST(EdgeLaws, more_work_is_never_faster_whatever_the_prices) {
  size_t compared = 0;
  for (const EdgeKernel& kernel : kernels_of_all_kinds()) {
    const std::vector<double> before = amounts(kernel);
    for (const EdgeKernel& larger : larger_kernels(kernel)) {
      const std::vector<double> after = amounts(larger);
      for (size_t i = 0; i < before.size(); ++i) {
        EXPECT_GE(after[i], before[i] * (1 - 1e-12)) << edge_kind_name(kernel.kind) << " " << edge_parameters(kernel)
                                                     << " " << edge_law(kernel.kind).prices[i].name;
      }
      ++compared;
    }
  }
  EXPECT_GT(compared, 500u);
}

TEST(EdgeLaws, channels_that_fill_registers_have_8_bit_kernels_of_their_own) {
  const auto amount = [](int64_t channels, int64_t window, std::string_view name) {
    const EdgeKernel kernel = *edge_in_int8(edge_convolution({.in_channels = channels,
                                                              .out_channels = channels,
                                                              .in_height = 14,
                                                              .in_width = 14,
                                                              .out_height = 14,
                                                              .out_width = 14,
                                                              .kernel_height = window,
                                                              .kernel_width = window}));
    const EdgeLaw& law = edge_law(kernel.kind);
    const std::vector<double> all = amounts(kernel);
    for (size_t i = 0; i < all.size(); ++i) {
      if (law.prices[i].name == name) return all[i];
    }
    return -1.0;
  };
  EXPECT_GT(amount(64, 3, "direct"), 0);
  EXPECT_EQ(amount(64, 3, "multiply"), 0);
  EXPECT_EQ(amount(60, 3, "direct"), 0);
  EXPECT_GT(amount(60, 3, "multiply"), 0);
  EXPECT_EQ(amount(64, 1, "direct"), 0);  // a product either way
}

TEST(EdgeLaws, a_row_reads_its_weights_from_as_far_as_the_model_reaches) {
  const EdgeKernel row = edge_product(EdgeKernelKind::gemv, {.k = 512, .n = 512});
  const EdgeLaw& law = edge_law(row.kind);
  const auto from_memory = [&](double touched_between) {
    EdgeCore core;
    core.touched_between = touched_between;
    std::vector<double> all(law.prices.size());
    law.amounts(row, core, all);
    for (size_t i = 0; i < all.size(); ++i) {
      if (law.prices[i].name == "right_memory") return all[i] / (512 * 512);
    }
    return -1.0;
  };
  EXPECT_LT(from_memory(0), 0.01);  // 1 MB of its own stays in the last-level cache
  EXPECT_GT(from_memory(200e6), 0.9);
}

TEST(EdgeLaws, one_row_by_another_tensor_takes_half_a_tile_of_four) {
  const auto tiles = [](int64_t rows) {
    return amounts(edge_product(EdgeKernelKind::batched_matmul, {.batch = 8, .m = rows, .k = 64, .n = 512}))[2];
  };
  EXPECT_EQ(tiles(1), tiles(4) / 2);
  EXPECT_EQ(tiles(2), tiles(4) / 2);
  EXPECT_EQ(tiles(3), tiles(4));
}

TEST(EdgeLaws, there_is_no_step_where_a_tensor_outgrows_the_cache) {
  const EdgeCore core;
  const auto capacity = static_cast<int64_t>(core.cache_bytes / 12);  // an addition touches three tensors of fp32
  for (int64_t elements = capacity / 2; elements < capacity * 2; elements += capacity / 50) {
    const std::vector<double> here = amounts(edge_tensor(EdgeKernelKind::add, {.elements = elements}));
    const std::vector<double> next = amounts(edge_tensor(EdgeKernelKind::add, {.elements = elements + 1}));
    for (size_t i = 1; i < here.size(); ++i) EXPECT_LT(next[i] - here[i], 1.2) << "per element more";
  }
}

}  // namespace foretoken::edge_laws_test
