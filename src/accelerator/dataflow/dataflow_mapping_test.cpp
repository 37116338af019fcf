#include "accelerator/dataflow/dataflow_mapping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "accelerator/dataflow/dataflow_analysis.h"
#include "accelerator/dataflow/dataflow_file.h"
#include "accelerator/dataflow/dataflow_library.h"
#include "accelerator/evaluator.h"
#include "accelerator/mapping_text.h"
#include "base/error.h"

namespace foretoken::dataflow_mapping_test {

constexpr DataflowHardware mapped_array{.num_pes = 256};

DataflowLayer layer_from(const std::string& description) {
  return parse_mapped_network("Network n { Layer l { " + description + " Dataflow { SpatialMap(1,1) K; } } }", "test")
      .layers.front()
      .layer;
}

const char* const usual_convolution = "Type: CONV Dimensions { K: 64, C: 64, R: 3, S: 3, Y: 58, X: 58 }";

std::vector<NamedDataflow> dataflows_of_the_library() {
  return read_dataflow_library(std::filesystem::path(FORETOKEN_SOURCE_DIR) / "data/accelerators/dataflows");
}

Evaluation evaluation_of(const DataflowMapping& mapped) {
  EXPECT_EQ(problem_fault(mapped.problem), "");
  EXPECT_EQ(architecture_fault(mapped.architecture), "");
  EXPECT_EQ(mapping_faults(mapped.mapping, mapped.architecture, mapped.problem), std::vector<std::string>());
  Evaluation evaluation;
  EXPECT_TRUE(MappingEvaluator(mapped.architecture, mapped.problem).evaluate(mapped.mapping, evaluation));
  return evaluation;
}

TEST(DataflowMapping, shipped_dataflows_take_the_cycles_and_the_traffic_of_their_loop_nests) {
  const DataflowLayer layer = layer_from(usual_convolution);
  for (const NamedDataflow& dataflow : dataflows_of_the_library()) {
    SCOPED_TRACE(dataflow.name);
    const std::vector<Directive> directives = directives_for(layer, dataflow);
    const DataflowMapping mapped = to_mapping(layer, directives, mapped_array, dataflow.name);
    const Evaluation evaluation = evaluation_of(mapped);
    EXPECT_EQ(evaluation.operations, static_cast<double>(mac_count(layer)));

    // The analysis adds what the loop nest leaves out: one cycle of the network for the first load of all, and one for
    // the first load of each step inside a cluster.
    double steps = 1;
    for (const Loop& loop : mapped.mapping.loops) steps *= loop.level == 0 ? static_cast<double>(loop.bound) : 1;
    const bool has_clusters = find_level(mapped.architecture, "cluster1") >= 0;
    const DataflowCost cost = analyse_dataflow(layer, directives, mapped_array, DataflowReading::physical, "test");
    EXPECT_EQ(static_cast<double>(cost.runtime_cycles), evaluation.cycles + (has_clusters ? steps : 0) + 1);

    // What enters and leaves L2 for a step is what the analysis sends to and from the elements, shared parts once.
    const auto traffic = [&](const char* tensor) {
      return traffic_at(evaluation, mapped.problem, 1, static_cast<size_t>(find_tensor(mapped.problem, tensor)));
    };
    EXPECT_EQ(static_cast<double>(cost.input.l2_read), traffic("Inputs").fills);
    EXPECT_EQ(static_cast<double>(cost.filter.l2_read), traffic("Weights").fills);
    EXPECT_EQ(static_cast<double>(cost.output.l2_write), traffic("Outputs").updates);
  }
}

TEST(DataflowMapping, L2_and_L1_hold_what_one_step_needs) {
  const DataflowLayer layer = layer_from(usual_convolution);
  const std::vector<NamedDataflow> library = dataflows_of_the_library();
  const DataflowMapping mapped = to_mapping(layer, find_dataflow(library, "kcp_ws").directives, mapped_array, "kcp_ws");
  const Evaluation evaluation = evaluation_of(mapped);
  const auto used = [&](const char* level) {
    return evaluation.levels[static_cast<size_t>(find_level(mapped.architecture, level))].used_words;
  };
  EXPECT_EQ(used("L2"), 4 * 64 * 9 + 64 * 9 + 4);
  EXPECT_EQ(used("L1"), 9 + 9 + 1);
}

TEST(DataflowMapping, other_kinds_of_layers_become_their_problems) {
  const std::vector<NamedDataflow> library = dataflows_of_the_library();
  for (const char* description :
       {"Type: DSCONV Dimensions { K: 1, C: 32, R: 3, S: 3, Y: 30, X: 30 }",
        "Type: NGCONV Dimensions { G: 4, K: 8, C: 16, R: 3, S: 3, Y: 30, X: 30 }",
        "Type: CONV Stride { X: 2, Y: 2 } Dimensions { K: 8, C: 3, R: 7, S: 7, Y: 64, X: 64 }",
        "Type: CONV Stride { X: 2, Y: 2 } Dimensions { K: 8, C: 3, R: 1, S: 1, Y: 28, X: 28 }"}) {
    const DataflowLayer layer = layer_from(description);
    const std::vector<Directive> directives = directives_for(layer, find_dataflow(library, "kcp_ws"));
    const Evaluation evaluation = evaluation_of(to_mapping(layer, directives, mapped_array, description));
    EXPECT_EQ(evaluation.operations, static_cast<double>(mac_count(layer))) << description;
  }
  const MappedNetwork gemm = parse_mapped_network(
      "Network n { Layer l { Type: GEMM Dimensions { M: 100, N: 60, K: 64 } Dataflow { TemporalMap(10,10) M; "
      "SpatialMap(1,1) N; TemporalMap(64,64) K; Cluster(64,P); SpatialMap(1,1) K; } } }",
      "test");
  const Evaluation evaluation =
      evaluation_of(to_mapping(gemm.layers.front().layer, gemm.layers.front().dataflow, mapped_array, "gemm"));
  EXPECT_EQ(evaluation.operations, 100.0 * 60 * 64);
}

TEST(DataflowMapping, what_loops_cannot_say_is_refused_by_name) {
  const DataflowLayer layer = layer_from(usual_convolution);
  const auto refused = [&](const std::string& directives) {
    try {
      to_mapping(layer, parse_directives(directives, "test"), mapped_array, "test");
    } catch (const InputError& error) {
      return error.problem().value;
    }
    return std::string("accepted");
  };
  EXPECT_EQ(refused("SpatialMap(4,2) K"), "SpatialMap(4,2) K");
  EXPECT_EQ(refused("SpatialMap(1,1) K; TemporalMap(5,1) Y"), "TemporalMap(5,1) Y");
  EXPECT_EQ(refused("SpatialMap(1,1) K; SpatialMap(1,1) C"), "SpatialMap(1,1) C");
  EXPECT_EQ(refused("SpatialMap(1,1) K; TemporalMap(1,1) Y; TemporalMap(1,1) R"), "TemporalMap(1,1) Y");
  EXPECT_EQ(refused("TemporalMap(10,10) K; SpatialMap(1,1) C; Cluster(4,P); SpatialMap(1,1) K"), "SpatialMap(1,1) K");
}

}  // namespace foretoken::dataflow_mapping_test
