#include "kernel/edge/thread_scaling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "base/file.h"
#include "kernel/edge/cpu_sweep.h"
#include "kernel/test_support.h"

namespace foretoken::thread_scaling_test {

using test_support::problem_of;
using testing::HasSubstr;

TEST(ThreadScaling, kernels_for_threads_are_a_few_of_every_kind) {
  std::map<EdgeKernelKind, size_t> all, few;
  for (const EdgeKernel& kernel : cpu_sweep_plan()) ++all[kernel.kind];
  for (const EdgeKernel& kernel : thread_sweep_plan()) ++few[kernel.kind];
  EXPECT_EQ(few.size(), all.size());
  for (const auto& [kind, count] : few) EXPECT_LE(count, 6u) << edge_kind_name(kind);
}

EdgeRow product_of(double seconds) {
  return {.kernel = edge_product(EdgeKernelKind::linear, {.m = 8, .k = 8, .n = 8}), .seconds = seconds};
}

EdgeRow empty_call(double seconds) {
  return {.kernel = {.kind = EdgeKernelKind::empty}, .seconds = seconds};
}

TEST(ThreadScaling, a_kind_divides_by_its_speedup_after_a_wait_and_small_kernels_stay_on_one_thread) {
  constexpr double call = 10e-6, wait = 20e-6;
  std::vector<EdgeRow> before = {empty_call(call)}, after = {empty_call(call)};
  for (const double work : {5e-6, 20e-6, 200e-6, 1e-3, 5e-3}) {
    before.push_back(product_of(call + work));
    after.push_back(product_of(call + std::min(work, wait + work / 2.5)));
  }
  const EdgeThreadScaling scaling = scaling_of(before, after, 4);
  EXPECT_EQ(scaling.threads, 4);
  ASSERT_EQ(scaling.kinds.size(), 1u);
  const EdgeSpeedup& speedup = scaling.kinds.at(EdgeKernelKind::linear);
  EXPECT_NEAR(speedup.times, 2.5, 0.07);
  EXPECT_NEAR(speedup.wait_ns, 20e3, 3e3);
  EXPECT_LT(speedup.half_width, 0.02);
  EXPECT_DOUBLE_EQ(speedup.seconds(5e-6), 5e-6);
}

TEST(ThreadScaling, kernels_that_scatter_have_a_wide_speedup) {
  const std::vector<EdgeRow> before = {product_of(3), product_of(1)}, after = {product_of(1), product_of(1)};
  EXPECT_GT(scaling_of(before, after, 4).kinds.at(EdgeKernelKind::linear).half_width, 0.4);
}

TEST(ThreadScaling, what_stands_in_for_a_kind_divides_for_it) {
  const EdgeThreadScaling scaling{
      .threads = 2, .kinds = {{EdgeKernelKind::linear, {.times = 1.8}}, {EdgeKernelKind::add, {.times = 1.2}}}};
  EXPECT_EQ(EdgePredictor::speedup_of(scaling, EdgeKernelKind::gemv)->times, 1.8);
  EXPECT_EQ(EdgePredictor::speedup_of(scaling, EdgeKernelKind::concat)->times, 1.2);
  EXPECT_EQ(EdgePredictor::speedup_of(scaling, EdgeKernelKind::convolution), nullptr);
}

std::filesystem::path table(const std::string& rows) {
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "edge_threads.csv";
  write_file(file, "kernel_id,kind,params,threads,wall_ms_min\n" + rows);
  return file;
}

TEST(ThreadScaling, a_table_needs_every_kernel_on_every_count_of_threads) {
  const std::vector<EdgeThreadScaling> scaling = read_thread_scaling(table("1,add,n=1024,1,2\n1,add,n=1024,2,1\n"));
  ASSERT_EQ(scaling.size(), 1u);
  EXPECT_NEAR(scaling[0].kinds.at(EdgeKernelKind::add).seconds(2e-3), 1e-3, 1e-9);
  for (const std::string rows : {"1,add,n=1024,1,2\n2,add,n=2048,2,1\n", "1,add,n=1024,2,2\n"}) {
    EXPECT_THAT(problem_of([&] { read_thread_scaling(table(rows)); }).expected, HasSubstr("the same kernels"));
  }
}

}  // namespace foretoken::thread_scaling_test
