// Graph files from the command line, and the same operators handed to the layers that cost them.
#include <gtest/gtest.h>

#include "accelerator/workload/layer_list.h"
#include "base/json.h"
#include "command_test.h"
#include "hardware/catalogue.h"
#include "kernel/kernel.h"
#include "model/onnx/read_graph.h"
#include "model/onnx/work.h"
#include "run.h"

namespace foretoken::graph_file_test {

const std::string encoder = FORETOKEN_SOURCE_DIR "/data/edge/networks/encoder.onnx";
const std::string mobilenet = FORETOKEN_SOURCE_DIR "/data/edge/networks/mobilenet_v2.onnx";

using GraphFile = CommandTest;

TEST_F(GraphFile, a_larger_batch_is_more_work_for_the_same_parameters) {
  const auto read = [](const std::string& batch) {
    const Outcome run = run_foretoken("models " + mobilenet + " --bind batch=" + batch + " --json");
    EXPECT_EQ(run.status, 0) << run.err;
    return parse_json(run.out, "answer");
  };
  const Json one = read("1"), eight = read("8");
  EXPECT_EQ(one.find("parameters")->number(), 3487816);  // MobileNetV2 with its normalisation folded in
  EXPECT_EQ(eight.find("parameters")->number(), one.find("parameters")->number());
  EXPECT_DOUBLE_EQ(eight.find("flops")->number(), 8 * one.find("flops")->number());
}

TEST_F(GraphFile, wrong_bindings_and_files_are_refused) {
  const Outcome of_one = run_foretoken("models " + encoder);
  EXPECT_NE(of_one.out.find("batch is taken as 1; --bind batch=SIZE sets it"), std::string::npos) << of_one.out;
  expect_refused(run_foretoken("models " + encoder + " --bind bach=1,batch=2"), "batch");
  expect_refused(run_foretoken("models " + encoder + " --bind batch"), "NAME=SIZE");
  expect_refused(run_foretoken("models Llama-3.1-8B --bind batch=1"), "--bind");
  expect_refused(run_foretoken("models " + write("no.onnx", "this is no model")), "no.onnx");
  expect_refused(run_foretoken("models " + path("missing.onnx")), "missing.onnx");
}

TEST_F(GraphFile, the_same_graph_is_costed_on_a_gpu_and_an_accelerator) {
  const OnnxGraph graph = read_onnx(mobilenet, {.bind = {{"batch", 1}}});
  const std::vector<Operator> operators = onnx_operators(graph);
  const HardwareCatalogue hardware(FORETOKEN_SOURCE_DIR "/data/hardware");
  const KernelPredictor predictor(hardware.device("h100_sxm"));
  double products = 0, seconds = 0;
  for (const Operator& own : operators) {
    seconds += predictor.estimate(own.shape).seconds.value * static_cast<double>(own.count);
    const bool multiplies =
        std::holds_alternative<ConvShape>(own.shape) || std::holds_alternative<GemmShape>(own.shape);
    if (multiplies) products += count_work(own.shape).flops.value() * static_cast<double>(own.count) / 2;
  }
  EXPECT_GT(seconds, 0);
  double operations_of_layers = 0;
  for (const AcceleratorLayer& layer : layers_of(operators))
    operations_of_layers += operations(layer.problem) * layer.count;
  EXPECT_DOUBLE_EQ(operations_of_layers, products);
}

}  // namespace foretoken::graph_file_test
