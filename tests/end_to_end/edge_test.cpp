// Networks on CPUs from the command line.
#include <gtest/gtest.h>

#include "base/json.h"
#include "command_test.h"
#include "run.h"

namespace foretoken::edge_test {

const std::string encoder = FORETOKEN_SOURCE_DIR "/data/edge/networks/encoder.onnx";
const std::string mobilenet = FORETOKEN_SOURCE_DIR "/data/edge/networks/mobilenet_v2.onnx";

using EdgeCommandTest = CommandTest;

Json edge_answer(const std::string& flags) {
  const Outcome run = run_foretoken("edge " + flags + " --json");
  EXPECT_EQ(run.status, 0) << run.err;
  return parse_json(run.out, "answer");
}

TEST_F(EdgeCommandTest, a_network_is_milliseconds_with_an_interval_and_all_its_steps) {
  const Json answer = edge_answer("--onnx " + mobilenet);
  const Json& seconds = *answer.find("seconds");
  EXPECT_GT(seconds.find("value")->number(), 0.001);
  EXPECT_LT(seconds.find("low")->number(), seconds.find("value")->number());
  EXPECT_GT(seconds.find("high")->number(), seconds.find("value")->number());
  EXPECT_EQ(answer.find("steps")->items().size(), 54U);  // 52 convolutions with all else joined, a pool, a product
  EXPECT_FALSE(answer.find("no_joules")->string().empty());
}

TEST_F(EdgeCommandTest, a_bound_batch_agrees_with_one_that_is_scaled) {
  const Json bound = edge_answer("--onnx " + mobilenet + " --bind batch=4");
  const Json scaled = edge_answer("--onnx " + mobilenet + " --batch-sizes 1,4");
  const Json& batches = *scaled.find("batches");
  ASSERT_EQ(batches.items().size(), 2U);
  EXPECT_DOUBLE_EQ(batches.items()[1].find("seconds")->find("value")->number(),
                   bound.find("seconds")->find("value")->number());
}

TEST_F(EdgeCommandTest, a_gpu_has_batches_and_a_page_too) {
  const std::string html = path("gpu.html");
  const Json answer = edge_answer("--onnx " + encoder + " --device h100_sxm --batch-sizes 1,4 --html " + html);
  const Json& batches = *answer.find("batches");
  ASSERT_EQ(batches.items().size(), 2U);
  EXPECT_EQ(batches.items()[0].find("seconds")->find("value")->number(),
            answer.find("seconds")->find("value")->number());
  const Json bound = edge_answer("--onnx " + encoder + " --device h100_sxm --bind batch=4");
  EXPECT_EQ(batches.items()[1].find("seconds")->find("value")->number(),
            bound.find("seconds")->find("value")->number());
  EXPECT_GT(std::filesystem::file_size(html), 1000U);
}

TEST_F(EdgeCommandTest, what_is_assumed_of_batch_and_threads_is_said) {
  const Outcome run = run_foretoken("edge --onnx " + encoder + " --threads 4");
  EXPECT_NE(run.out.find("batch is taken as 1"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("the speedup of 4 threads was not measured"), std::string::npos) << run.out;
}

TEST_F(EdgeCommandTest, files_are_written_and_wrong_names_refused) {
  const std::string svg = path("net.svg"), html = path("net.html"), csv = path("net.csv");
  const Outcome run = run_foretoken("edge --onnx " + encoder + " --svg " + svg + " --html " + html + " --csv " + csv);
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.out.find("wrote " + csv), std::string::npos);
  for (const std::string& file : {svg, html, csv}) EXPECT_GT(std::filesystem::file_size(file), 100U);
  expect_refused(run_foretoken("edge --onnx " + encoder + " --device neoverse"), "neoverse_v1_ort");
  expect_refused(run_foretoken("edge --onnx " + encoder + " --fusion onnxruntim"), "onnxruntime");
  expect_refused(run_foretoken("edge --onnx " + path("none.onnx")), "none.onnx");
}

}  // namespace foretoken::edge_test
