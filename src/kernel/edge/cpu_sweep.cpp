#include "kernel/edge/cpu_sweep.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <optional>
#include <utility>

#include "base/error.h"

namespace foretoken {
namespace {

double process_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double wall_seconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double least_seconds(const CpuCall& call, const CpuSweepOptions& options) {
  const auto clock = options.wall_clock ? wall_seconds : process_seconds;
  call();
  double least = 0;
  for (int sample = 0; sample < options.samples; ++sample) {
    const double start = clock();
    double spent = 0;
    int64_t calls = 0;
    // The clock is read after 1, 2, 4, ... calls, so that it costs nothing beside them.
    for (int64_t batch = 1; spent < options.sample_seconds; batch *= 2) {
      for (int64_t i = 0; i < batch; ++i) call();
      calls += batch;
      spent = clock() - start;
    }
    const double each = spent / static_cast<double>(calls);
    least = sample == 0 ? each : std::min(least, each);
  }
  return least;
}

void add_in_all_formats(std::vector<EdgeKernel>& plan, const EdgeKernel& kernel) {
  plan.push_back(kernel);
  if (const std::optional<EdgeKernel> int8 = edge_in_int8(kernel)) plan.push_back(*int8);
  if (const std::optional<EdgeKernel> int4 = edge_in_int4(kernel)) plan.push_back(*int4);
}

void add_convolutions(std::vector<EdgeKernel>& plan) {
  constexpr EdgeActivation activations[] = {EdgeActivation::none, EdgeActivation::relu, EdgeActivation::clip};
  for (const int64_t side : {7, 14, 20, 28, 56}) {
    for (const int64_t channels : {8, 20, 32, 80, 192}) {
      for (const int64_t window : {1, 3, 5}) {
        for (const int64_t stride : {1, 2}) {
          if (side * side * channels * channels * window * window > 300'000'000) continue;
          ConvolutionSizes sizes{.in_channels = channels,
                                 .out_channels = channels * (window == 1 ? 3 : 1) + 4,
                                 .in_height = side,
                                 .in_width = side,
                                 .out_height = (side + stride - 1) / stride,
                                 .out_width = (side + stride - 1) / stride,
                                 .kernel_height = window,
                                 .kernel_width = window,
                                 .stride = stride,
                                 .activation = activations[plan.size() % std::size(activations)]};
          add_in_all_formats(plan, edge_convolution(sizes));
          if (window == 1) continue;
          sizes.groups = sizes.out_channels = channels;
          add_in_all_formats(plan, edge_convolution(sizes));
        }
      }
    }
  }
}

// Channels that fill registers, for which runtimes have other 8-bit kernels.
void add_aligned_int8_convolutions(std::vector<EdgeKernel>& plan) {
  for (const int64_t side : {7, 14, 28, 56}) {
    for (const int64_t channels : {16, 64, 128, 256, 512}) {
      for (const int64_t window : {1, 3, 5}) {
        for (const int64_t stride : {1, 2}) {
          const int64_t out_side = (side + stride - 1) / stride;
          ConvolutionSizes sizes{.in_channels = channels,
                                 .out_channels = window == 1 ? 2 * channels : channels,
                                 .in_height = side,
                                 .in_width = side,
                                 .out_height = out_side,
                                 .out_width = out_side,
                                 .kernel_height = window,
                                 .kernel_width = window,
                                 .stride = stride};
          if (out_side * out_side * channels * sizes.out_channels * window * window <= 150'000'000)
            plan.push_back(*edge_in_int8(edge_convolution(sizes)));
          if (window == 1 || side * side * channels > 500'000) continue;
          sizes.groups = sizes.out_channels = channels;
          plan.push_back(*edge_in_int8(edge_convolution(sizes)));
        }
      }
    }
  }
}

void add_products(std::vector<EdgeKernel>& plan) {
  for (const int64_t k : {64, 256, 768}) {
    for (const int64_t n : {48, 256, 1000}) {
      add_in_all_formats(plan, edge_product(EdgeKernelKind::gemv, {.m = 1, .k = k, .n = n}));
      for (const int64_t m : {8, 50, 197})
        add_in_all_formats(plan, edge_product(EdgeKernelKind::linear, {.m = m, .k = k, .n = n}));
    }
  }
  // Layers of transformers, whose weights lie in the last-level cache or beyond it.
  for (const auto& [k, n] : {std::pair<int64_t, int64_t>{768, 3072},
                             {3072, 768},
                             {1024, 4096},
                             {2048, 2048},
                             {4096, 1024},
                             {2048, 8192},
                             {8192, 2048}}) {
    add_in_all_formats(plan, edge_product(EdgeKernelKind::gemv, {.m = 1, .k = k, .n = n}));
    if (k * n < 5'000'000) {
      for (const int64_t m : {16, 64})
        add_in_all_formats(plan, edge_product(EdgeKernelKind::linear, {.m = m, .k = k, .n = n}));
    }
  }
  // In narrow formats only matrices this large lie beyond the last-level cache.
  for (const auto& [k, n] : {std::pair<int64_t, int64_t>{4096, 8192}, {8192, 8192}, {8192, 11008}}) {
    const EdgeKernel product = edge_product(EdgeKernelKind::gemv, {.m = 1, .k = k, .n = n});
    plan.push_back(*edge_in_int8(product));
    plan.push_back(*edge_in_int4(product));
  }
  for (const int64_t length : {256, 1024}) {  // the attention of a decode
    plan.push_back(edge_product(EdgeKernelKind::batched_matmul, {.batch = 8, .m = 1, .k = 64, .n = length}));
    plan.push_back(edge_product(EdgeKernelKind::batched_matmul, {.batch = 8, .m = 1, .k = length, .n = 64}));
  }
  for (const int64_t batch : {2, 8}) {
    for (const int64_t length : {16, 64, 197}) {
      plan.push_back(edge_product(EdgeKernelKind::batched_matmul, {.batch = batch, .m = length, .k = 64, .n = length}));
      plan.push_back(edge_product(EdgeKernelKind::batched_matmul, {.batch = batch, .m = length, .k = length, .n = 64}));
    }
  }
}

// Tensors of 64 channels, so that every runtime can give them a shape.
void add_tensors(std::vector<EdgeKernel>& plan) {
  constexpr int64_t channels = 64;
  for (const int64_t side : {3, 4, 6, 7, 10, 14, 18, 24, 30, 36, 40, 48, 56, 70, 90, 120}) {
    const int64_t elements = channels * side * side;
    for (const EdgeKernelKind kind :
         {EdgeKernelKind::add, EdgeKernelKind::add_relu, EdgeKernelKind::channel_scale, EdgeKernelKind::concat,
          EdgeKernelKind::global_pool, EdgeKernelKind::sigmoid, EdgeKernelKind::int8_add, EdgeKernelKind::quantize})
      plan.push_back(edge_tensor(kind, {.elements = elements, .outputs = elements}));
    plan.push_back(
        edge_tensor(EdgeKernelKind::scaled_softmax, {.elements = elements, .rows = side * side, .outputs = elements}));
    plan.push_back(
        edge_tensor(EdgeKernelKind::scaled_softmax, {.elements = elements, .rows = 2 * side, .outputs = elements}));
    // Chains and moves that transformers have; XNNPACK has no such operators, nor int4 products; ONNX Runtime does.
    plan.push_back(
        edge_tensor(EdgeKernelKind::layer_norm, {.elements = elements, .rows = side * side, .outputs = elements}));
    plan.push_back(edge_tensor(EdgeKernelKind::gelu, {.elements = elements, .outputs = elements}));
    for (const bool swaps : {false, true})
      plan.push_back(edge_tensor(EdgeKernelKind::transpose,
                                 {.elements = elements, .outputs = elements, .swaps_last_axes = swaps}));
    for (const int64_t window : {2, 3}) {
      const int64_t out_side = (side - window) / 2 + 1;
      plan.push_back(edge_tensor(EdgeKernelKind::max_pool,
                                 {.elements = elements, .outputs = channels * out_side * out_side, .window = window}));
    }
  }
}

}  // namespace

std::vector<EdgeKernel> cpu_sweep_plan() {
  std::vector<EdgeKernel> plan(3, EdgeKernel{.kind = EdgeKernelKind::empty});
  add_convolutions(plan);
  add_aligned_int8_convolutions(plan);
  add_products(plan);
  add_tensors(plan);
  return plan;
}

std::vector<EdgeRow> sweep_cpu(std::span<const EdgeKernel> plan, const CpuCallMaker& make_call,
                               const CpuSweepOptions& options, const EdgeSweepProgress& progress) {
  std::vector<EdgeRow> rows;
  const double start = process_seconds();
  for (size_t i = 0; i < plan.size() && process_seconds() - start < options.most_seconds; ++i) {
    const CpuCall call = make_call(plan[i]);
    if (call) rows.push_back({.row = rows.size() + 1, .kernel = plan[i], .seconds = least_seconds(call, options)});
    if (progress) progress(i + 1, plan.size());
  }
  return rows;
}

}  // namespace foretoken
