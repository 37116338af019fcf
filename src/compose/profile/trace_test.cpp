#include "compose/profile/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "compose/profile/kernel_class.h"
#include "compose/profile/summary.h"
#include "compose/profile/test_trace.h"

namespace foretoken::profile_trace_test {

using testing::HasSubstr;

std::string complaint(const std::string& text) {
  try {
    parse_profile(text, "trace.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(ProfileTrace, every_kernel_has_the_operator_that_launched_it) {
  const ProfiledStep step = parse_profile(test_trace(2), "trace.json");
  ASSERT_EQ(step.kernels.size(), step.operators.size());
  for (size_t i = 0; i < step.kernels.size(); ++i) {
    ASSERT_TRUE(step.kernels[i].call);
    EXPECT_EQ(*step.kernels[i].call, i);
    EXPECT_FALSE(step.kernels[i].backward);
  }
  EXPECT_FALSE(step.graph);
}

TEST(ProfileTrace, the_outermost_operator_counts_and_wrappers_do_not) {
  const auto event = [](const char* category, const char* name, double start, double duration, const char* arguments) {
    return fmt::format(R"({{"ph":"X","cat":"{}","name":"{}","tid":1,"ts":{},"dur":{},"args":{}}})", category, name,
                       start, duration, arguments);
  };
  const std::string text = "[" + event("cpu_op", "autograd::engine::evaluate_function: MmBackward0", 0, 100, "{}") +
                           "," + event("cpu_op", "aten::linear", 1, 50, "{}") + "," +
                           event("cpu_op", "aten::mm", 2, 40, "{}") + "," +
                           event("cuda_runtime", "cudaLaunchKernel", 10, 2, R"({"correlation":7})") + "," +
                           event("kernel", "gemm", 20, 5, R"({"correlation":7})") + "," +
                           event("kernel", "other", 30, 5, R"({"correlation":8})") + "]";
  const ProfiledStep step = parse_profile(text, "trace.json");
  ASSERT_EQ(step.kernels.size(), 2U);
  EXPECT_EQ(step.operators.at(step.kernels[0].call.value()).name, "aten::linear");
  EXPECT_TRUE(step.kernels[0].backward);
  EXPECT_EQ(step.kernels[0].launched_us, 10);
  EXPECT_FALSE(step.kernels[1].call) << "nothing launched it";
  EXPECT_FALSE(step.kernels[1].launched_us);
}

TEST(ProfileTrace, a_graph_is_seen) {
  const std::string text =
      R"([{"ph":"X","cat":"cuda_runtime","name":"cudaGraphLaunch","tid":1,"ts":1,"dur":2,"args":{"correlation":7}},
          {"ph":"X","cat":"kernel","name":"gemm","tid":7,"ts":5,"dur":2,"args":{"correlation":7}}])";
  EXPECT_TRUE(parse_profile(text, "trace.json").graph);
}

TEST(ProfileTrace, what_the_profiler_takes_is_left_out_of_the_hosts_time) {
  const auto intervals = host_intervals_us(parse_profile(test_trace(2), "trace.json"));
  EXPECT_FALSE(intervals.at(0));
  for (size_t i = 1; i < intervals.size(); ++i) EXPECT_NEAR(intervals[i].value(), 10 - 4, 1e-9);
}

TEST(ProfileTrace, mistakes_are_told_with_their_place) {
  EXPECT_THAT(complaint("{"), HasSubstr("trace.json"));
  EXPECT_THAT(complaint("{}"), HasSubstr("traceEvents"));
  EXPECT_THAT(complaint(R"({"traceEvents": []})"), HasSubstr("ProfilerActivity.CUDA"));
  EXPECT_THAT(complaint(R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1}]})"),
              HasSubstr("traceEvents[0]"));
  EXPECT_THAT(complaint(R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": -1}]})"),
              HasSubstr("traceEvents[0].dur"));
}

TEST(ProfileSummary, classes_hold_every_kernel_and_its_time) {
  const ProfiledStep step = parse_profile(test_trace(3), "trace.json");
  const ProfileSummary summary = summarize_profile(step);
  size_t kernels = 0;
  double time = 0;
  for (const ProfiledClass& one : summary.classes) {
    kernels += one.kernels;
    time += one.device_us;
  }
  EXPECT_EQ(kernels, step.kernels.size());
  EXPECT_NEAR(time, summary.device_us, 1e-9);
  EXPECT_NEAR(summary.device_us + summary.gaps_us, summary.span_us, 1e-9);
  EXPECT_EQ(summary.classes.front().name, "multiply (torch_linear)");
}

TEST(KernelClass, names_of_real_kernels_are_told_apart) {
  const auto role = [](const char* name) { return classify_kernel({.name = name}, nullptr).role; };
  EXPECT_EQ(role("nvjet_sm90_tst_64x8_64x16_4x1_v_bz_splitK_TNT"), KernelRole::multiply);
  EXPECT_EQ(role("void cublasLt::splitKreduce_kernel<32, 16, int, float>"), KernelRole::multiply);
  EXPECT_EQ(role("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7"), KernelRole::attention);
  EXPECT_EQ(role("void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits>"),
            KernelRole::attention);
  EXPECT_EQ(role("triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_0"), KernelRole::compiled);
  EXPECT_EQ(role("void at::native::(anonymous namespace)::CatArrayBatchedCopy<x>"), KernelRole::elementwise);
  EXPECT_EQ(role("something_else"), KernelRole::unknown);
}

TEST(ProfiledTrace, host_times_follow_launches_where_streams_run_side_by_side) {
  const auto event = [](const char* kind, const char* name, double start, int correlation, int stream) {
    return Json::object({{"ph", "X"}, {"cat", kind}, {"name", name}, {"tid", 1}, {"ts", start}, {"dur", 2}})
        .set("args", Json::object({{"correlation", correlation}, {"stream", stream}}));
  };
  const Json events =
      Json::array({event("cuda_runtime", "cudaLaunchKernel", 0, 1, 0), event("kernel", "a", 10, 1, 7),
                   event("cuda_runtime", "cudaLaunchKernel", 8, 2, 0), event("kernel", "b", 50, 2, 7),
                   event("cuda_runtime", "cudaLaunchKernel", 20, 3, 0), event("kernel", "c", 30, 3, 9)});
  const ProfiledStep step = parse_profile(events.dump(0), "trace.json");
  ASSERT_EQ(step.kernels[1].name, "c");
  const auto intervals = host_intervals_us(step);
  EXPECT_EQ(intervals[1], 12) << "from the launch of b to that of c";
  EXPECT_EQ(intervals[2], 8);
}

}  // namespace foretoken::profile_trace_test
