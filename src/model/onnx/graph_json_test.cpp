#include "model/onnx/graph_json.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "model/onnx/read_graph.h"
#include "model/onnx/summary.h"

namespace foretoken::graph_json_test {

constexpr const char* example = R"({
  "format": "foretoken-graph", "version": 1, "name": "mlp", "opset": 20,
  "inputs": [{"name": "x", "type": "float", "shape": ["batch", 64]}],
  "constants": [{"name": "w", "type": "float", "shape": [64, 10]},
                {"name": "to", "type": "int64", "shape": [2], "values": [-1, 5]}],
  "nodes": [
    {"name": "fc", "op": "MatMul", "inputs": ["x", "w"], "outputs": [{"name": "y", "type": "float"}]},
    {"name": "act", "op": "LeakyRelu", "inputs": ["y"], "outputs": [{"name": "z"}], "attributes": {"alpha": 0.1}},
    {"name": "cut", "op": "Reshape", "inputs": ["z", "to"], "outputs": [{"name": "r"}]}],
  "outputs": ["r"]
})";

OnnxGraph graph_of(const std::string& text, const OnnxOptions& options = {}) {
  const Json document = parse_json(text, "graph.json");
  return import_onnx(parse_graph_json(JsonView(document, "graph.json")), options);
}

TEST(GraphJson, a_graph_from_elsewhere_is_counted_like_onnx) {
  const OnnxGraph graph = graph_of(example, {.bind = {{"batch", 4}}});
  EXPECT_EQ(graph.tensor(graph.outputs[0]).dims, (OnnxDims{8, 5}));
  const OnnxSummary summary = summarize(graph);
  EXPECT_EQ(summary.parameters, 640);
  EXPECT_EQ(summary.flops.value(), 2 * 4 * 64 * 10 + 2 * 4 * 10);
}

TEST(GraphJson, a_wrong_key_type_or_number_of_values_is_named) {
  const auto problem = [](std::string text, const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
    try {
      graph_of(text, {.batch_is_one = true});
    } catch (const InputError& error) {
      return error.problem();
    }
    return InputProblem{};
  };
  EXPECT_EQ(problem(example, "\"op\": \"MatMul\"", "\"oper\": \"MatMul\"").source, "graph.json");
  EXPECT_EQ(problem(example, "\"type\": \"int64\"", "\"type\": \"int63\"").path, "constants[1].type");
  EXPECT_EQ(problem(example, "[-1, 5]", "[-1, 5, 6]").path, "constants[1].values");
  EXPECT_EQ(problem(example, "\"version\": 1", "\"version\": 2").path, "version");
}

}  // namespace foretoken::graph_json_test
