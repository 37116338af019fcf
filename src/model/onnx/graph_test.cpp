#include "model/onnx/graph.h"

#include <algorithm>
#include <cstdlib>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "model/onnx/read_graph.h"
#include "model/onnx/summary.h"
#include "model/onnx/test_graphs.h"
#include "model/onnx/work.h"
#include "model/onnx/writer.h"

namespace foretoken::graph_test {

// The problem that importing a graph ends in.
InputProblem problem_of(const OnnxTestGraph& graph, const OnnxOptions& options = {}) {
  try {
    graph.graph(options);
  } catch (const InputError& error) {
    return error.problem();
  }
  return {};
}

const OnnxTensor& result(const OnnxGraph& graph) {
  return graph.tensor(graph.outputs.at(0));
}

TEST(OnnxGraph, a_symbolic_batch_is_bound_and_scales_the_work) {
  const OnnxTestGraph network = block_network(2, 2);
  const OnnxGraph one = network.graph({.bind = {{"batch", 1}}}), eight = network.graph({.bind = {{"batch", 8}}});
  EXPECT_EQ(result(one).dims, (OnnxDims{1, 10}));
  EXPECT_EQ(result(eight).dims, (OnnxDims{8, 10}));
  const OnnxSummary a = summarize(one), b = summarize(eight);
  EXPECT_DOUBLE_EQ(b.flops.value(), 8 * a.flops.value());
  EXPECT_EQ(b.parameters, a.parameters);
  EXPECT_DOUBLE_EQ(b.peak_activations.value(), 8 * a.peak_activations.value());
}

TEST(OnnxGraph, a_dimension_without_a_size_is_listed_with_its_flag) {
  const OnnxTestGraph network = block_network(1, 0);
  const InputProblem problem = problem_of(network);
  EXPECT_NE(problem.expected.find("{bind} batch=SIZE"), std::string::npos);
  EXPECT_EQ(result(network.graph({.batch_is_one = true})).dims, (OnnxDims{1, 10}));
  EXPECT_EQ(result(network.graph({.bind = {{"image.0", 3}}})).dims, (OnnxDims{3, 10}));
  EXPECT_EQ(problem_of(network, {.bind = {{"batch", 1}, {"btch", 2}}}).suggestion, "batch");
}

TEST(OnnxGraph, a_cycle_a_missing_tensor_and_a_second_producer_are_named) {
  OnnxTestGraph cycle;
  cycle.input("x", {4});
  cycle.file().body.nodes = {{.name = "a", .operation = "Add", .inputs = {"x", "q"}, .outputs = {"p"}},
                             {.name = "b", .operation = "Relu", .inputs = {"p"}, .outputs = {"q"}}};
  EXPECT_EQ(problem_of(cycle).path, "node a");
  EXPECT_EQ(problem_of(cycle).expected, "a graph without cycles");

  OnnxTestGraph missing;
  missing.input("x", {4});
  missing.node("Add", {"x", "nowhere"});
  EXPECT_NE(problem_of(missing).path.find("Add_0"), std::string::npos);
  EXPECT_NE(problem_of(missing).value.find("nowhere"), std::string::npos);

  OnnxTestGraph twice;
  twice.input("x", {4});
  twice.file().body.nodes = {{.name = "a", .operation = "Relu", .inputs = {"x"}, .outputs = {"y"}},
                             {.name = "b", .operation = "Relu", .inputs = {"x"}, .outputs = {"y"}}};
  EXPECT_NE(problem_of(twice).path.find("node b"), std::string::npos);
}

TEST(OnnxGraph, nodes_in_any_order_are_sorted) {
  OnnxTestGraph graph;
  graph.input("x", {4});
  graph.file().body.nodes = {{.name = "last", .operation = "Relu", .inputs = {"p"}, .outputs = {"q"}},
                             {.name = "first", .operation = "Neg", .inputs = {"x"}, .outputs = {"p"}}};
  graph.output("q");
  const OnnxGraph sorted = graph.graph();
  EXPECT_EQ(sorted.nodes[0].name, "first");
  EXPECT_EQ(result(sorted).producer, 1);
}

TEST(OnnxGraph, shapes_worked_out_in_the_graph_are_folded) {
  const OnnxGraph graph = transformer_network(2).graph({.bind = {{"batch", 3}}});
  EXPECT_EQ(result(graph).dims, (OnnxDims{3, 16, 64}));
  for (const OnnxNode& node : graph.nodes) {
    const bool on_shapes = node.operation == "Shape" || node.operation == "Gather" || node.operation == "Unsqueeze" ||
                           node.operation == "Concat";
    EXPECT_EQ(node.is_folded, on_shapes) << node.name;
  }
}

TEST(OnnxGraph, a_function_is_the_same_as_its_nodes_in_place) {
  OnnxTestGraph called;
  called.file().functions.push_back({.domain = "mine",
                                     .name = "Layer",
                                     .inputs = {"a", "w"},
                                     .outputs = {"c"},
                                     .defaults = {with("transB", int64_t{1})},
                                     .nodes = {{.operation = "Gemm",
                                                .inputs = {"a", "w"},
                                                .outputs = {"b"},
                                                .attributes = {{.name = "transB", .reference = "transB"}}},
                                               {.operation = "Relu", .inputs = {"b"}, .outputs = {"c"}}}});
  called.input("x", {2, 8});
  called.output(called.node("Layer", {"x", called.weight({5, 8})}, {}, 1, "mine"));
  OnnxTestGraph plain;
  plain.input("x", {2, 8});
  plain.output(plain.node("Relu", {plain.node("Gemm", {"x", plain.weight({5, 8})}, {with("transB", int64_t{1})})}));
  const OnnxSummary a = summarize(called.graph()), b = summarize(plain.graph());
  EXPECT_EQ(result(called.graph()).dims, (OnnxDims{2, 5}));
  EXPECT_EQ(a.flops, b.flops);
  EXPECT_EQ(a.bytes, b.bytes);
}

TEST(OnnxGraph, a_function_that_calls_itself_is_refused) {
  OnnxTestGraph graph;
  graph.file().functions.push_back(
      {.domain = "mine",
       .name = "F",
       .inputs = {"a"},
       .outputs = {"b"},
       .nodes = {{.operation = "F", .domain = "mine", .inputs = {"a"}, .outputs = {"c"}},
                 {.operation = "F", .domain = "mine", .inputs = {"c"}, .outputs = {"b"}}}});
  graph.input("x", {2});
  graph.node("F", {"x"}, {}, 1, "mine");
  EXPECT_NE(problem_of(graph).expected.find("levels"), std::string::npos);
}

// Relu of the outer x, and of that again `extra` times.
OnnxBody branch_body(int extra) {
  OnnxBody body;
  std::string last = "x";
  for (int i = 0; i <= extra; ++i) {
    const std::string next = "r" + std::to_string(i);
    body.nodes.push_back({.operation = "Relu", .inputs = {last}, .outputs = {next}});
    last = next;
  }
  body.outputs.push_back({.name = last});
  return body;
}

TEST(OnnxGraph, of_an_if_the_costlier_branch_is_counted_unless_the_condition_is_known) {
  OnnxTestGraph open;
  open.input("x", {100});
  open.input("flag", {}, OnnxType::boolean);
  open.output(
      open.node("If", {"flag"}, {with_body("then_branch", branch_body(0)), with_body("else_branch", branch_body(2))}));
  const OnnxSummary both = summarize(open.graph());
  EXPECT_EQ(both.flops.value(), 300);
  EXPECT_EQ(both.control_flow.size(), 1u);
  EXPECT_EQ(result(open.graph()).dims, (OnnxDims{100}));

  OnnxTestGraph known;
  known.input("x", {100});
  const std::string yes = known.node("Equal", {known.integers({1}), known.integers({1})});
  known.output(
      known.node("If", {yes}, {with_body("then_branch", branch_body(0)), with_body("else_branch", branch_body(2))}));
  EXPECT_EQ(summarize(known.graph()).flops.value(), 100);
}

// A product of the outer x and an outer weight.
OnnxBody product_body(const std::string& weight) {
  OnnxBody body;
  body.nodes.push_back({.operation = "MatMul", .inputs = {"x", weight}, .outputs = {"y"}});
  body.outputs.push_back({.name = "y"});
  return body;
}

TEST(OnnxGraph, a_branch_whose_sizes_contradict_each_other_is_not_the_one_that_is_taken) {
  const auto with_weights_of = [](int64_t then_rows, int64_t else_rows) {
    OnnxTestGraph graph;
    graph.input("x", {2, 3});
    graph.input("flag", {}, OnnxType::boolean);
    const std::string then_weight = graph.weight({then_rows, 4}), else_weight = graph.weight({else_rows, 5});
    graph.output(graph.node(
        "If", {"flag"},
        {with_body("then_branch", product_body(then_weight)), with_body("else_branch", product_body(else_weight))}));
    return graph;
  };
  EXPECT_EQ(result(with_weights_of(7, 3).graph()).dims, (OnnxDims{2, 5}));
  EXPECT_EQ(result(with_weights_of(3, 7).graph()).dims, (OnnxDims{2, 4}));
  EXPECT_FALSE(with_weights_of(3, 7).graph().notes.empty());
  EXPECT_THROW(with_weights_of(7, 7).graph(), InputError);
}

size_t notes_with(const OnnxGraph& graph, const std::string& text) {
  return static_cast<size_t>(std::count_if(graph.notes.begin(), graph.notes.end(), [&](const std::string& note) {
    return note.find(text) != std::string::npos;
  }));
}

// Adds x to a state and collects a row a run.
OnnxBody adding_body() {
  OnnxBody body;
  body.inputs = {{.name = "i"}, {.name = "go"}, {.name = "state"}};
  body.nodes = {{.operation = "Identity", .inputs = {"go"}, .outputs = {"again"}},
                {.operation = "Add", .inputs = {"state", "x"}, .outputs = {"sum"}},
                {.operation = "Relu", .inputs = {"sum"}, .outputs = {"row"}}};
  body.outputs = {{.name = "again"}, {.name = "sum"}, {.name = "row"}};
  return body;
}

TEST(OnnxGraph, a_loop_is_counted_as_often_as_it_runs_and_collects_a_row_for_each_run) {
  OnnxTestGraph graph;
  graph.input("x", {7});
  graph.output(graph.node("Loop", {graph.integer(5), "", "x"}, {with_body("body", adding_body())}, 2));
  const OnnxGraph made = graph.graph();
  const OnnxNode& loop = made.nodes.back();
  EXPECT_EQ(made.tensor(loop.outputs[0]).dims, (OnnxDims{7}));
  EXPECT_EQ(made.tensor(loop.outputs[1]).dims, (OnnxDims{5, 7}));
  EXPECT_EQ(summarize(made).flops.value(), 5 * 14);
  EXPECT_EQ(summarize(made).bytes.value(), 5 * (3 + 2) * 7 * 4);  // of the sum and of the row
  for (const Operator& own : onnx_operators(made)) EXPECT_EQ(own.count, 5);
  EXPECT_EQ(notes_with(made, "its body is counted 5 times"), 1U);
  EXPECT_EQ(made.notes.size(), 1U);
}

TEST(OnnxGraph, a_body_within_a_loop_is_counted_as_often_as_both_run_and_the_notes_say_so) {
  OnnxTestGraph graph;
  graph.input("x", {7});
  graph.input("flag", {}, OnnxType::boolean);
  const std::string trips = graph.integer(3);
  OnnxBody inner;
  inner.inputs = {{.name = "j"}, {.name = "on"}, {.name = "part"}};
  inner.nodes = {{.operation = "Identity", .inputs = {"on"}, .outputs = {"still"}},
                 {.operation = "Relu", .inputs = {"part"}, .outputs = {"next"}}};
  inner.outputs = {{.name = "still"}, {.name = "next"}};
  OnnxBody outer;
  outer.inputs = {{.name = "i"}, {.name = "go"}, {.name = "state"}};
  outer.nodes = {{.operation = "Identity", .inputs = {"go"}, .outputs = {"again"}},
                 {.operation = "Loop",
                  .inputs = {trips, "", "state"},
                  .outputs = {"looped"},
                  .attributes = {with_body("body", inner)}},
                 {.operation = "If",
                  .inputs = {"flag"},
                  .outputs = {"chosen"},
                  .attributes = {with_body("then_branch", branch_body(0)), with_body("else_branch", branch_body(1))}}};
  outer.outputs = {{.name = "again"}, {.name = "looped"}, {.name = "chosen"}};
  graph.output(graph.node("Loop", {graph.integer(5), "", "x"}, {with_body("body", outer)}, 2));
  const OnnxGraph made = graph.graph();
  EXPECT_EQ(summarize(made).flops.value(), (15 + 2 * 5) * 7);
  EXPECT_EQ(notes_with(made, "its body is counted 5 times"), 1U);
  EXPECT_EQ(notes_with(made, "its body is counted 15 times"), 1U);
  EXPECT_EQ(notes_with(made, "its else_branch is counted 5 times"), 1U);
  EXPECT_EQ(made.notes.size(), 3U);
}

TEST(OnnxGraph, a_loop_that_runs_as_often_as_data_say_is_counted_once_with_a_note) {
  OnnxTestGraph graph;
  graph.input("x", {7});
  graph.output(
      graph.node("Loop", {graph.input("trips", {}, OnnxType::int64), "", "x"}, {with_body("body", adding_body())}, 2));
  const OnnxGraph made = graph.graph();
  EXPECT_EQ(summarize(made).flops.value(), 14);
  EXPECT_EQ(notes_with(made, "its body is counted once: the number of its iterations is not known"), 1U);
  EXPECT_EQ(made.notes.size(), 1U);
}

TEST(OnnxGraph, a_scan_is_counted_once_for_each_element) {
  OnnxBody body;
  body.inputs = {{.name = "state"}, {.name = "element"}};
  body.nodes = {{.operation = "Add", .inputs = {"state", "element"}, .outputs = {"sum"}},
                {.operation = "Relu", .inputs = {"sum"}, .outputs = {"row"}}};
  body.outputs = {{.name = "sum"}, {.name = "row"}};
  OnnxTestGraph graph;
  graph.output(graph.node("Scan", {graph.input("start", {7}), graph.input("sequence", {6, 7})},
                          {with_body("body", body), with("num_scan_inputs", int64_t{1})}, 2));
  EXPECT_EQ(summarize(graph.graph()).flops.value(), 6 * 14);
}

TEST(OnnxGraph, an_input_without_a_shape_is_named_unless_its_sizes_are_bound) {
  OnnxTestGraph graph;
  graph.file().body.inputs.push_back({.name = "x", .type = OnnxType::float32});
  graph.output(graph.node("Relu", {"x"}));
  try {
    graph.graph();
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.problem().path, "x");
  }
  EXPECT_EQ(result(graph.graph({.bind = {{"x.0", 2}, {"x.1", 3}}})).dims, (OnnxDims{2, 3}));
  EXPECT_THROW(graph.graph({.bind = {{"x.1", 3}}}), InputError);
}

TEST(OnnxGraph, an_unknown_operator_is_listed_and_costed_as_traffic) {
  OnnxTestGraph graph;
  graph.input("x", {3, 4});
  graph.output(graph.node("Relu", {graph.node("Mystery", {"x", graph.weight({10})}, {}, 1, "mine")}));
  const OnnxGraph made = graph.graph();
  const OnnxSummary summary = summarize(made);
  EXPECT_EQ(summary.unknown, (std::vector<std::string>{"mine.Mystery"}));
  const Work work = onnx_work(made, made.nodes[0]);
  EXPECT_EQ(work.bytes().value(), 4 * (12 + 10 + 12));
  EXPECT_EQ(onnx_operators(made, made.nodes[0]).size(), 1u);
  EXPECT_EQ(result(made).origin, OnnxShapeOrigin::assumed);
}

TEST(OnnxGraph, what_the_exporter_says_of_an_unknown_operator_is_taken) {
  OnnxTestGraph graph;
  graph.input("x", {3, 4});
  graph.output(graph.node("Mystery", {"x"}, {}, 1, "mine"));
  graph.file().body.between.push_back({.name = graph.file().body.outputs[0].name,
                                       .type = OnnxType::float16,
                                       .has_shape = true,
                                       .dims = {{.size = 6}, {.size = 2}}});
  EXPECT_EQ(result(graph.graph()).dims, (OnnxDims{6, 2}));
  EXPECT_EQ(result(graph.graph()).type, OnnxType::float16);
}

TEST(OnnxGraph, what_depends_on_data_is_bounded_and_says_so) {
  OnnxTestGraph graph;
  graph.input("x", {3, 4});
  const std::string places = graph.node("NonZero", {"x"});
  graph.output(graph.node("Transpose", {places}));
  const OnnxGraph made = graph.graph();
  EXPECT_EQ(result(made).dims, (OnnxDims{12, 2}));
  EXPECT_EQ(result(made).origin, OnnxShapeOrigin::bounded);
  EXPECT_FALSE(made.notes.empty());
}

TEST(OnnxGraph, the_peak_is_the_most_that_lives_at_one_time) {
  OnnxTestGraph graph;  // x lives on: it is added at the end; views cost nothing
  graph.input("x", {100});
  const std::string wide = graph.node("Tile", {"x", graph.integers({3})});
  const std::string view = graph.node("Reshape", {wide, graph.integers({3, 100})});
  const std::string sum = graph.node("ReduceSum", {view, graph.integers({0})}, {with("keepdims", int64_t{0})});
  graph.output(graph.node("Add", {sum, "x"}));
  EXPECT_EQ(summarize(graph.graph()).peak_activations.value(), 4 * (100 + 300 + 100));
}

TEST(OnnxGraph, readers_of_a_tensor_are_listed_once_and_in_order) {
  OnnxTestGraph graph;
  graph.input("x", {4});
  const std::string square = graph.node("Mul", {"x", "x"});
  graph.output(graph.node("Add", {square, "x"}));
  const OnnxGraph made = graph.graph();
  const auto readers = tensor_readers(made);
  EXPECT_EQ(readers[static_cast<size_t>(made.inputs[0])], (std::vector<int64_t>{0, 1}));
  EXPECT_TRUE(readers[static_cast<size_t>(made.outputs[0])].empty());
}

TEST(OnnxGraph, a_shared_weight_is_one_parameter_tensor) {
  OnnxTestGraph graph;
  graph.input("x", {2, 8});
  const std::string weight = graph.weight({8, 8});
  const std::string turned = graph.node("Transpose", {weight});
  graph.output(graph.node("MatMul", {graph.node("MatMul", {"x", weight}), graph.node("Identity", {turned})}));
  const OnnxSummary summary = summarize(graph.graph());
  EXPECT_EQ(summary.parameters, 64);
  EXPECT_EQ(summary.weights.value(), 256);
}

TEST(OnnxGraphNeedsData, every_shape_of_the_exported_networks_is_known) {
  const char* data = std::getenv("FORETOKEN_DATA");
  if (data == nullptr) GTEST_SKIP() << "FORETOKEN_DATA is not set";
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(data) / "edge" / "onnx")) {
    const OnnxGraph graph = read_onnx(entry.path());
    const OnnxSummary summary = summarize(graph);
    EXPECT_TRUE(summary.unknown.empty()) << entry.path();
    for (const OnnxTensor& tensor : graph.tensors) {
      EXPECT_TRUE(tensor.origin == OnnxShapeOrigin::given || tensor.origin == OnnxShapeOrigin::inferred) << tensor.name;
    }
    ++files;
  }
  EXPECT_GT(files, 0);
}

TEST(OnnxGraphNeedsData, published_parameters_and_flops_are_met) {
  const char* data = std::getenv("FORETOKEN_DATA");
  if (data == nullptr) GTEST_SKIP() << "FORETOKEN_DATA is not set";
  struct Published {
    const char* file;
    double parameters, multiplies;  // torchvision's model pages: millions, giga multiply-adds
  };
  for (const Published& own : {Published{"tv_resnet50", 25.6e6, 4.09e9}, Published{"tv_mobilenet_v2", 3.5e6, 0.30e9},
                               Published{"tv_vit_b_16", 86.6e6, 17.56e9}, Published{"tv_swin_t", 28.3e6, 4.49e9},
                               Published{"tv_densenet121", 8.0e6, 2.83e9}}) {
    const auto path = std::filesystem::path(data) / "edge" / "onnx" / (std::string(own.file) + ".onnx");
    if (!std::filesystem::exists(path)) continue;
    const OnnxSummary summary = summarize(read_onnx(path));
    EXPECT_NEAR(summary.parameters / own.parameters, 1, 0.02) << own.file;
    EXPECT_NEAR(summary.flops.value() / 2 / own.multiplies, 1, 0.03) << own.file;
  }
}

}  // namespace foretoken::graph_test
