// A profiler trace on another GPU.
#include <cstdlib>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "command_test.h"
#include "compose/profile/test_trace.h"

namespace foretoken::port_command_test {

using testing::HasSubstr;

class PortCommand : public CommandTest {
 protected:
  std::string trace() const { return write("trace.json", test_trace(2)); }
};

TEST_F(PortCommand, a_trace_of_an_h100_is_told_for_an_h200) {
  const std::string line = "port " + trace() + " --device h100_sxm --to h200_sxm";
  const Outcome run = run_foretoken(line);
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(in_one_line(run.out), HasSubstr("On NVIDIA H200"));
  EXPECT_THAT(run.out, HasSubstr("kernel estimates"));
  const Outcome json = run_foretoken(line + " --json");
  const Json document = parse_json(json.out, "port");
  const JsonView view(document, "port");
  EXPECT_EQ(view.at("from").string(), "h100_sxm");
  EXPECT_EQ(view.at("to").string(), "h200_sxm");
  const JsonView seconds = view.at("kernel_seconds");
  EXPECT_LT(seconds.at("low").number(), seconds.at("value").number());
  EXPECT_LT(seconds.at("value").number(), seconds.at("high").number());
}

TEST_F(PortCommand, warns_between_gpus_of_two_vendors) {
  const auto text_to = [&](const std::string& gpu) {
    return in_one_line(run_foretoken("port " + trace() + " --device h100_sxm --to " + gpu).out);
  };
  EXPECT_THAT(text_to("mi300x"), HasSubstr("Between NVIDIA and AMD GPUs"));
  EXPECT_THAT(text_to("b200_sxm"), testing::Not(HasSubstr("NVIDIA and AMD")));
}

TEST_F(PortCommand, what_contradicts_the_trace_is_said_and_what_runs_no_gpu_kernels_is_refused) {
  std::string text = test_trace(2);
  const std::string named = "\"deviceProperties\": [{\"id\": 0, \"name\": \"NVIDIA H200\"}], ";
  text.insert(text.find('{') + 1, named);
  const std::string line = "port " + write("named.json", text) + " --device h100_sxm --to ";
  EXPECT_THAT(in_one_line(run_foretoken(line + "b200_sxm").out), HasSubstr("recorded on NVIDIA H200"));
  expect_refused(run_foretoken(line + "tpu_v5e"), "a GPU");
}

TEST_F(PortCommand, a_trace_of_one_gpu_is_told_for_a_pipeline) {
  const std::string line = "port " + trace() + " --device h100_sxm --to-pp 2 --micro-batches 4";
  const Outcome run = run_foretoken(line + " --json");
  ASSERT_EQ(run.status, 0) << run.err;
  const Json document = parse_json(run.out, "port");
  const JsonView view(document, "port");
  EXPECT_EQ(view.at("to").string(), "h100_sxm");
  EXPECT_EQ(view.at("to_plan").at("pipeline_parallel_size").integer(), 2);
  const double measured = view.at("measured_seconds").number();
  const double seconds = view.at("seconds").at("value").number();
  EXPECT_GE(seconds, 0.5 * measured * (1 + 1.0 / 4)) << "half of the layers, and a bubble";
  EXPECT_LT(seconds, 0.75 * measured);
  EXPECT_THAT(in_one_line(run_foretoken(line).out), HasSubstr("with TP1 PP2 DP1"));
}

TEST_F(PortCommand, replicas_without_a_backward_pass_say_that_no_all_reduce_was_added) {
  const std::string line = "port " + trace() + " --device h100_sxm --to-dp 8";
  const std::string words = "No backward pass was found in the trace: no all-reduce of gradients was added";
  const Outcome text = run_foretoken(line);
  ASSERT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(in_one_line(text.out), HasSubstr(words));
  const Outcome json = run_foretoken(line + " --json");
  EXPECT_THAT(json.out, HasSubstr(words));
  const Json document = parse_json(json.out, "port");
  EXPECT_EQ(JsonView(document, "port").at("seconds").at("confidence").string(), "extrapolated");
  EXPECT_THAT(run_foretoken("port " + trace() + " --device h100_sxm --to h200_sxm").out,
              testing::Not(HasSubstr("backward pass")));
}

// Two layers and a message of unknown size.
std::string communicating_trace() {
  TestTrace trace;
  trace.model(2);
  trace.run("mine::dispatch", {}, "deep_ep::internode::dispatch");
  return trace.text();
}

TEST_F(PortCommand, communication_of_unknown_size_is_told_by_what_becomes_of_it) {
  const std::string line = "port " + write("messages.json", communicating_trace()) + " --device h100_sxm ";
  const std::string kept = in_one_line(run_foretoken(line + "--to h200_sxm").out);
  EXPECT_THAT(kept, HasSubstr("DP, keeps its measured time"));
  const std::string scaled = in_one_line(run_foretoken(line + "--to-pp 2 --micro-batches 4").out);
  EXPECT_THAT(scaled, HasSubstr("DP, is scaled by the layers of a stage"));
  EXPECT_THAT(scaled, testing::Not(HasSubstr("keeps its measured time")));
}

TEST_F(PortCommand, an_unknown_number_of_micro_batches_is_said_where_gradients_are_added) {
  TestTrace trace;
  trace.model(2);
  trace.run("autograd::engine::evaluate_function: MmBackward0",
            {TestTrace::sizes({32, 64}), TestTrace::sizes({64, 64})}, "nvjet_sm90_tst_64x8");
  const std::string line = "port " + write("training.json", trace.text()) + " --device h100_sxm --to-dp 8";
  EXPECT_THAT(in_one_line(run_foretoken(line).out), HasSubstr("taken as one micro-batch"));
  EXPECT_THAT(run_foretoken(line + " --json").out, HasSubstr("taken as one micro-batch"));
  EXPECT_THAT(in_one_line(run_foretoken(line + " --micro-batches 2").out),
              testing::Not(HasSubstr("taken as one micro-batch")));
}

TEST_F(PortCommand, a_chakra_trace_of_a_profile_takes_as_long) {
  const std::string prefix = path("run");
  ASSERT_EQ(run_foretoken("import profile " + trace() + " --as-chakra " + prefix).status, 0);
  const auto seconds = [](const std::string& file) {
    const Outcome run = run_foretoken("port " + file + " --device h100_sxm --to-pp 2 --micro-batches 4 --json");
    EXPECT_EQ(run.status, 0) << run.err;
    const Json document = parse_json(run.out, "port");
    return JsonView(document, "port").at("measured_seconds").number();
  };
  EXPECT_NEAR(seconds(prefix + ".0.et") / seconds(trace()), 1, 1e-6);
}

TEST_F(PortCommand, a_trace_of_one_gpu_gets_the_all_reduces_of_tensor_parallelism) {
  const Outcome run = run_foretoken("port " + trace() + " --device h100_sxm --to-tp 2");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(in_one_line(run.out),
              HasSubstr("The all-reduces of tensor parallelism, which are not in the trace, add"));
}

TEST_F(PortCommand, refusals_say_what_is_missing) {
  expect_refused(run_foretoken("port " + trace() + " --to h200_sxm"), "--device, the GPU that was profiled");
  expect_refused(run_foretoken("port " + trace() + " --device h100_sxm --to h20000"), "--to: h20000");
  expect_refused(run_foretoken("port " + trace() + " --device banana --to h200_sxm"), "--device: banana");
  expect_refused(run_foretoken("port " + trace() + " --device h100_sxm"), "--to");
  expect_refused(run_foretoken("port " + trace() + " --device h100_sxm --to-pp 2"), "micro-batches");
  expect_refused(run_foretoken("port " + path("nothing.json") + " --to h200_sxm"), "nothing.json");
  for (const std::string flag : {"-tp 1048576 -pp 1048576 -dp 1048576 --to h200_sxm", "--to-dp 1048576 -tp 2 -dp 1"}) {
    expect_refused(run_foretoken("port " + trace() + " --device h100_sxm " + flag), "at most 1048576");
  }
  expect_refused(run_foretoken("port " + write("empty.json", "{}") + " --to h200_sxm"), "traceEvents");
}

TEST(PortCommandNeedsData, a_training_chunk_of_deepseek_v3_is_told_for_an_h200) {
  const char* data = std::getenv("FORETOKEN_DATA");
  if (data == nullptr) GTEST_SKIP() << "FORETOKEN_DATA is not set";
  const std::string trace = (std::filesystem::path(data) / "deepseek" / "train_trace.json.gz").string();
  const Outcome run = run_foretoken("port " + trace + " --to h200_sxm --json");
  ASSERT_EQ(run.status, 0) << run.err;
  const Json document = parse_json(run.out, "port");
  const JsonView view(document, "port");
  EXPECT_EQ(view.at("from").string(), "h800_sxm") << "as the trace names it";
  EXPECT_NEAR(view.at("measured_seconds").number(), 0.129, 0.001);
  const double seconds = view.at("seconds").at("value").number();
  EXPECT_LT(seconds, 0.130) << "an H200 has the same multiply units and more bandwidth";
  EXPECT_GT(seconds, 0.129 * 3.35 / 4.8);
}

}  // namespace foretoken::port_command_test
