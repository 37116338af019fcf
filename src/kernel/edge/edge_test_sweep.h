// A sweep made up from known prices, for the tests of this folder.
#pragma once

#include <vector>

#include "kernel/edge/edge_predictor.h"
#include "kernel/edge/edge_rows.h"

namespace foretoken::test_support {

// Kernels of several kinds and sizes.
inline std::vector<EdgeKernel> swept_kernels() {
  std::vector<EdgeKernel> kernels;
  for (int i = 0; i < 3; ++i) kernels.push_back({.kind = EdgeKernelKind::empty});
  for (const int64_t channels : {8, 24, 64, 160}) {
    for (const int64_t side : {7, 14, 40}) {
      for (const int64_t window : {1, 3}) {
        for (const int64_t stride : {1, 2}) {
          ConvolutionSizes sizes{.in_channels = channels,
                                 .out_channels = 2 * channels,
                                 .in_height = side,
                                 .in_width = side,
                                 .out_height = (side + stride - 1) / stride,
                                 .out_width = (side + stride - 1) / stride,
                                 .kernel_height = window,
                                 .kernel_width = window,
                                 .stride = stride,
                                 .activation = static_cast<EdgeActivation>(kernels.size() % 4)};
          kernels.push_back(edge_convolution(sizes));
          sizes.groups = sizes.out_channels = channels;
          kernels.push_back(edge_convolution(sizes));
        }
      }
    }
  }
  for (const int64_t m : {1, 16, 100}) {
    for (const int64_t k : {32, 250, 700}) {
      for (const int64_t n : {10, 64, 500}) {
        kernels.push_back(edge_product(EdgeKernelKind::linear, {.m = m, .k = k, .n = n}));
        kernels.push_back(edge_product(EdgeKernelKind::batched_matmul, {.batch = 4, .m = m, .k = k, .n = n}));
      }
    }
  }
  for (const EdgeKernelKind kind : {EdgeKernelKind::add, EdgeKernelKind::concat, EdgeKernelKind::gelu}) {
    for (int64_t elements = 500; elements < 3'000'000; elements *= 3)
      kernels.push_back(edge_tensor(kind, {.elements = elements, .outputs = elements}));
  }
  return kernels;
}

// A device on which every price is the law's start times this.
inline EdgePredictor made_up_predictor(double speed) {
  EdgePredictor predictor{.device = "made up", .runtime = "none", .runtime_version = "1", .source = "a test"};
  for (const EdgeKernel& kernel : swept_kernels()) {
    EdgeKindPrices& prices = predictor.kinds[kernel.kind];
    prices = {.rows = prices.rows + 1, .half_width = 0.1};
    for (const EdgePrice& price : edge_law(kernel.kind).prices) {
      prices.prices_ns.push_back(price.start_ns * speed);
      prices.least.push_back(1);
      prices.most.push_back(1e9);
    }
  }
  return predictor;
}

inline std::vector<EdgeRow> made_up_rows(double speed) {
  const EdgePredictor truth = made_up_predictor(speed);
  std::vector<EdgeRow> rows;
  for (const EdgeKernel& kernel : swept_kernels())
    rows.push_back({.row = rows.size() + 1, .kernel = kernel, .seconds = truth.kernel_seconds(kernel).value});
  return rows;
}

}  // namespace foretoken::test_support
