#include "kernel/edge/thread_scaling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>

#include <fmt/format.h>

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

TEST(ThreadScaling, a_width_is_that_of_kernels_left_out) {
  // The third gains nothing: without it the others look perfect, and it lies far off.
  const std::vector<EdgeRow> before = {product_of(3), product_of(1), product_of(2)};
  const std::vector<EdgeRow> after = {product_of(1.5), product_of(0.5), product_of(2)};
  EXPECT_NEAR(scaling_of(before, after, 4).kinds.at(EdgeKernelKind::linear).half_width, std::log(2.0), 0.05);
}

TEST(ThreadScaling, a_kind_of_which_hardly_any_kernel_gains_stays_on_one_thread) {
  std::vector<EdgeRow> before, after;
  for (int i = 1; i <= 9; ++i) {
    before.push_back(product_of(i * 1e-4));
    after.push_back(product_of(i * 1e-4));
  }
  after.back().seconds /= 1.6;
  const EdgeSpeedup speedup = scaling_of(before, after, 2).kinds.at(EdgeKernelKind::linear);
  EXPECT_EQ(speedup.times, 1);
  EXPECT_GT(speedup.half_width, 0.4);
}

TEST(ThreadScaling, two_kernels_say_nothing_about_a_kind) {
  const std::vector<EdgeRow> before = {product_of(3), product_of(1)}, after = {product_of(1), product_of(0.5)};
  EXPECT_TRUE(scaling_of(before, after, 4).kinds.empty());
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

TEST(ThreadScaling, a_table_needs_every_kernel_on_every_count_of_threads_from_the_sweeps_on) {
  std::string rows;
  for (int i = 1; i <= 3; ++i) rows += fmt::format("{0},add,n={0}024,1,{1}\n", i, 2 * i);
  std::string more = rows;
  for (int i = 1; i <= 3; ++i) more += fmt::format("{0},add,n={0}024,2,{0}\n", i);
  const std::vector<EdgeThreadScaling> scaling = read_thread_scaling(table(more));
  ASSERT_EQ(scaling.size(), 1u);
  EXPECT_NEAR(scaling[0].kinds.at(EdgeKernelKind::add).seconds(2e-3), 1e-3, 1e-9);
  const auto expected = [](const std::string& text, int base) {
    return problem_of([&] { read_thread_scaling(table(text), base); }).expected;
  };
  EXPECT_THAT(expected("1,add,n=1024,1,2\n2,add,n=2048,2,1\n", 1), HasSubstr("the same kernels"));
  EXPECT_THAT(expected(rows, 1), HasSubstr("on 1 thread, as in the sweep, and on more"));
  EXPECT_THAT(expected(more, 2), HasSubstr("on 2 threads, as in the sweep, and on more"));
  EXPECT_THAT(expected("", 1), HasSubstr("on 1 thread"));
}

}  // namespace foretoken::thread_scaling_test
