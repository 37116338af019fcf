#include "compose/profile/ported_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "compose/profile/kernel_shape.h"
#include "compose/profile/test_trace.h"
#include "library/library.h"

namespace foretoken {
namespace ported_trace_test {
namespace {

Library library() {
  return Library(std::filesystem::path(FORETOKEN_SOURCE_DIR) / "data", {});
}

PortedTrace ported(const std::string& text, const std::string& from, const std::string& to) {
  return port_trace(parse_profile(text, "test"), {.from = library().predictor(from), .to = library().predictor(to)});
}

const PortedClass& class_of(const PortedTrace& trace, const std::string& name) {
  for (const PortedClass& one : trace.classes) {
    if (one.name == name) return one;
  }
  throw std::runtime_error("no class " + name);
}

TEST(PortedTrace, a_trace_on_its_own_gpu_stays_as_it_is) {
  const PortedTrace trace = ported(test_trace(2), "h100_sxm", "h100_sxm");
  EXPECT_NEAR(trace.ported_us.value, trace.measured_us, 1e-9 * trace.measured_us);
  EXPECT_NEAR(trace.ported_us.low, trace.measured_us, 1e-9 * trace.measured_us);
  EXPECT_NEAR(trace.ported_us.high, trace.measured_us, 1e-9 * trace.measured_us);
  EXPECT_NEAR(trace.ported_span_us.value, trace.measured_span_us, 1e-9 * trace.measured_span_us);
}

TEST(PortedTrace, the_span_is_that_of_the_trace) {
  const ProfiledStep step = parse_profile(test_trace(2), "test");
  const PortedTrace trace = ported(test_trace(2), "h100_sxm", "h200_sxm");
  const double recorded = step.kernels.back().start_us + step.kernels.back().us - *step.kernels.front().launched_us;
  EXPECT_NEAR(trace.measured_span_us, recorded, 0.01);
}

TEST(PortedTrace, every_kernel_has_a_class_and_times_add_up) {
  const PortedTrace trace = ported(test_trace(3), "h100_sxm", "b200_sxm");
  double measured = 0, ported_us = 0;
  size_t kernels = 0;
  for (const PortedClass& one : trace.classes) {
    measured += one.measured_us, ported_us += one.ported_us.value, kernels += one.kernels;
    EXPECT_LE(one.ported_us.low, one.ported_us.value) << one.name;
    EXPECT_GE(one.ported_us.high, one.ported_us.value) << one.name;
  }
  EXPECT_EQ(kernels, trace.kernels);
  EXPECT_NEAR(measured, trace.measured_us, 1e-6);
  EXPECT_NEAR(ported_us, trace.ported_us.value, 1e-6);
  EXPECT_GT(trace.measured_us_by(PortBasis::estimates), 0.5 * trace.measured_us);
  EXPECT_GT(trace.sized_predicted_us, 0);
}

// One operator with a kernel of `us`, large enough for bandwidth or peak rate to decide.
std::string large(const std::string& name, std::vector<Json> inputs, const std::string& kernel) {
  TestTrace trace;
  trace.run(name, std::move(inputs), kernel);
  return trace.text();
}

TEST(PortedTrace, large_sums_follow_the_bandwidth_and_large_multiplies_the_peak_rate) {
  const Json tensor = TestTrace::sizes({16384, 16384});
  const PortedTrace sum = ported(large("aten::add", {tensor, tensor}, "void at::native::vectorized_elementwise_kernel"),
                                 "h100_sxm", "h200_sxm");
  EXPECT_NEAR(sum.ported_us.value / sum.measured_us, 3.35 / 4.8, 0.08);
  const PortedTrace multiply = ported(large("aten::mm", {tensor, tensor}, "nvjet_sm90"), "h100_sxm", "h200_sxm");
  EXPECT_NEAR(multiply.ported_us.value / multiply.measured_us, 1, 0.12);
  EXPECT_EQ(multiply.classes.front().basis, PortBasis::estimates);
}

TEST(PortedTrace, there_and_back_is_where_it_was) {
  const Json tensor = TestTrace::sizes({4096, 4096});
  const std::string text = large("aten::mm", {tensor, tensor}, "nvjet_sm90");
  const PortedTrace there = ported(text, "a100_sxm", "h100_sxm"), back = ported(text, "h100_sxm", "a100_sxm");
  EXPECT_NEAR(there.ported_us.value / there.measured_us * back.ported_us.value / back.measured_us, 1, 1e-9);
}

TEST(PortedTrace, kernels_without_sizes_are_scaled_by_the_sheet_within_both_bounds) {
  TestTrace trace;
  trace.run("mine::kernel", {}, "my_own_kernel");
  ProfiledStep step = parse_profile(trace.text(), "test");
  step.kernels[0].us = 1002;
  const PortedTrace result = port_trace(
      step, {.from = library().predictor(std::string("a100_sxm")), .to = library().predictor(std::string("h100_sxm"))});
  const PortedClass& unknown = class_of(result, "unknown");
  EXPECT_EQ(unknown.basis, PortBasis::sheet);
  EXPECT_EQ(unknown.ported_us.kind, Confidence::roofline);
  // 312 -> 989 TFLOP/s and 2.04 -> 3.35 TB/s; 2 us are those of any kernel.
  EXPECT_GT(unknown.ported_us.value, 2 + 1000 * 312.0 / 989);
  EXPECT_LT(unknown.ported_us.value, 2 + 1000 * 2.04 / 3.35);
  EXPECT_LT(unknown.ported_us.low, 2 + 1000 * 312.0 / 989);
  EXPECT_GT(unknown.ported_us.high, 2 + 1000 * 2.04 / 3.35);
}

TEST(PortedTrace, a_kernel_of_two_microseconds_does_not_get_shorter_by_the_sheet) {
  TestTrace trace;
  trace.run("mine::kernel", {}, "my_own_kernel");
  const PortedTrace result = ported(trace.text(), "a100_sxm", "b200_sxm");
  EXPECT_DOUBLE_EQ(result.ported_us.value, 2);
}

TEST(PortedTrace, communication_keeps_its_time) {
  TestTrace trace;
  trace.run("mine::dispatch", {}, "deep_ep::internode::dispatch");
  trace.run("mine::kernel", {}, "my_own_kernel");
  const PortedTrace result = ported(trace.text(), "a100_sxm", "h100_sxm");
  const PortedClass& communicate = class_of(result, "communicate");
  EXPECT_EQ(communicate.basis, PortBasis::kept);
  EXPECT_DOUBLE_EQ(communicate.ported_us.value, communicate.measured_us);
  EXPECT_DOUBLE_EQ(communicate.ported_us.high, 1.5 * communicate.measured_us);
  const PortedTrace same = ported(trace.text(), "a100_sxm", "a100_sxm");
  EXPECT_DOUBLE_EQ(class_of(same, "communicate").ported_us.high, communicate.measured_us);
}

TEST(KernelShape, sizes_of_operators_become_shapes) {
  const auto shape = [](const std::string& name, std::vector<Json> inputs, const std::string& kernel) {
    const ProfiledStep step = parse_profile(large(name, std::move(inputs), kernel), "test");
    const ProfiledOperator& call = step.operators[step.kernels[0].call.value()];
    return shape_of_kernel(step.kernels[0], &call, classify_kernel(step.kernels[0], &call));
  };
  const auto sizes = [](std::vector<int64_t> dims) { return TestTrace::sizes(std::move(dims)); };
  const GemmShape expected{.m = 6, .n = 7, .k = 5, .scheme = Scheme::bf16};
  EXPECT_EQ(std::get<GemmShape>(shape("aten::linear", {sizes({2, 3, 5}), sizes({7, 5})}, "gemm")->shape), expected);
  EXPECT_EQ(std::get<GemmShape>(shape("aten::mm", {sizes({6, 5}), sizes({5, 7})}, "gemm")->shape), expected);
  EXPECT_EQ(std::get<GemmShape>(shape("aten::addmm", {sizes({7}), sizes({6, 5}), sizes({5, 7})}, "gemm")->shape),
            expected);
  const GemmShape batched{.m = 3, .n = 7, .k = 5, .batch = 2, .scheme = Scheme::bf16};
  EXPECT_EQ(std::get<GemmShape>(shape("aten::bmm", {sizes({2, 3, 5}), sizes({2, 5, 7})}, "gemm")->shape), batched);
  EXPECT_FALSE(shape("aten::mm", {sizes({6, 4}), sizes({5, 7})}, "gemm")) << "inner sizes differ";
  EXPECT_FALSE(shape("aten::mm", {sizes({0, 5}), sizes({5, 7})}, "gemm")) << "an empty tensor";
  EXPECT_FALSE(shape("aten::mm", {}, "gemm")) << "no sizes recorded";
  const AttentionShape attention = std::get<AttentionShape>(
      shape("aten::scaled_dot_product_attention", {sizes({2, 8, 1, 64}), sizes({2, 4, 96, 64})}, "flash_fwd")->shape);
  EXPECT_EQ(attention.phase, AttentionPhase::decode);
  EXPECT_EQ(attention.kv_heads, 4);
  EXPECT_EQ(attention.kv_len, 96);
}

}  // namespace
}  // namespace ported_trace_test
}  // namespace foretoken
