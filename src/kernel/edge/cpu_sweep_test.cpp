#include "kernel/edge/cpu_sweep.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "base/file.h"

namespace foretoken::cpu_sweep_test {

constexpr CpuSweepOptions short_samples{.samples = 1, .sample_seconds = 1e-6};

TEST(CpuSweep, every_kind_that_is_planned_has_enough_kernels_to_fit_and_check) {
  std::map<EdgeKernelKind, size_t> count;
  for (const EdgeKernel& kernel : cpu_sweep_plan()) ++count[kernel.kind];
  for (const auto& [kind, kernels] : count) EXPECT_GE(kernels, 3u) << edge_kind_name(kind);
  EXPECT_GE(count.size(), 13u);
}

TEST(CpuSweep, the_plan_has_what_transformers_and_quantized_networks_need) {
  std::map<EdgeKernelKind, size_t> count;
  int64_t largest_gemv = 0;
  for (const EdgeKernel& kernel : cpu_sweep_plan()) {
    ++count[kernel.kind];
    if (kernel.kind != EdgeKernelKind::gemv) continue;
    const auto& sizes = std::get<ProductSizes>(kernel.sizes);
    largest_gemv = std::max(largest_gemv, sizes.k * sizes.n);
  }
  for (const EdgeKernelKind kind :
       {EdgeKernelKind::layer_norm, EdgeKernelKind::gelu, EdgeKernelKind::transpose, EdgeKernelKind::scaled_softmax,
        EdgeKernelKind::int8_convolution, EdgeKernelKind::int8_depthwise, EdgeKernelKind::int8_linear,
        EdgeKernelKind::int8_gemv, EdgeKernelKind::int4_linear, EdgeKernelKind::int4_gemv, EdgeKernelKind::int8_add,
        EdgeKernelKind::quantize})
    EXPECT_GE(count[kind], 12u) << edge_kind_name(kind);
  EXPECT_GE(largest_gemv, 16'000'000);  // 64 MB of weights: beyond the caches of most CPUs
}

TEST(CpuSweep, each_kernel_is_called_and_those_without_a_call_are_left_out) {
  const std::vector<EdgeKernel> plan = cpu_sweep_plan();
  size_t calls = 0, told = 0, skipped = 0;
  const CpuCallMaker make = [&](const EdgeKernel& kernel) -> CpuCall {
    if (kernel.kind == EdgeKernelKind::sigmoid) return ++skipped, CpuCall{};
    return [&] { ++calls; };
  };
  const std::vector<EdgeRow> rows = sweep_cpu(plan, make, short_samples, [&](size_t done, size_t) { told = done; });
  EXPECT_GT(skipped, 0u);
  EXPECT_EQ(rows.size() + skipped, plan.size());
  EXPECT_GE(calls, 2 * rows.size());
  EXPECT_EQ(told, plan.size());
  for (const EdgeRow& row : rows) EXPECT_GT(row.seconds, 0);
}

TEST(CpuSweep, a_sweep_without_time_measures_nothing) {
  CpuSweepOptions options = short_samples;
  options.most_seconds = 0;
  EXPECT_TRUE(sweep_cpu(
                  cpu_sweep_plan(), [](const EdgeKernel&) { return CpuCall([] {}); }, options)
                  .empty());
}

TEST(CpuSweep, its_table_reads_back_as_the_same_rows) {
  const std::vector<EdgeKernel> plan = cpu_sweep_plan();
  std::vector<EdgeRow> rows;
  for (const EdgeKernel& kernel : plan)
    rows.push_back({.row = rows.size() + 1, .kernel = kernel, .seconds = 1e-6 * static_cast<double>(rows.size() + 1)});
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "edge_sweep.csv";
  write_file(file, edge_rows_csv(rows));
  const std::vector<EdgeRow> read = read_edge_rows(file);
  ASSERT_EQ(read.size(), rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(read[i].kernel, rows[i].kernel) << edge_parameters(rows[i].kernel);
    EXPECT_NEAR(read[i].seconds / rows[i].seconds, 1, 1e-12);
  }
}

}  // namespace foretoken::cpu_sweep_test
