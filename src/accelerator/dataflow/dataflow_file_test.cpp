#include "accelerator/dataflow/dataflow_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace foretoken::dataflow_file_test {

constexpr const char* two_layers = R"(
// a comment
Constant Tile 16;
Network small {
  Layer first-1 {
    Type: CONV
    Stride { X: 2, Y: 2 }
    Dimensions { K: 64, C: 3, R: 7, S: 7, Y: 224, X: 224 }
    Dataflow {
      SpatialMap(1,1) K;      // one filter each
      TemporalMap(Tile,Tile) C;
      TemporalMap (8+Sz(S)-1, 8) X;
      Cluster(Sz(R), P);
      SpatialMap(1,1) C
      TemporalMap(4,4) Y';
    }
  }
  Layer second { Type: DSCONV Dimensions { C: 32, R: 3, S: 3, Y': 28, X': 28 } Stride { X: 2 } }
}
)";

InputProblem problem_of(const std::string& text) {
  try {
    parse_mapped_network(text, "mapping.m");
  } catch (const InputError& error) {
    return error.problem();
  }
  ADD_FAILURE() << "accepted: " << text;
  return {};
}

std::string layer_text(const std::string& body) {
  return "Network n {\nLayer l {\n" + body + "\n}\n}\n";
}

TEST(DataflowFile, a_network_keeps_types_strides_sizes_and_directives) {
  const MappedNetwork network = parse_mapped_network(two_layers, "test");
  EXPECT_EQ(network.name, "small");
  ASSERT_EQ(network.layers.size(), 2u);
  const MappedLayer& first = network.layers[0];
  EXPECT_EQ(first.layer.name, "first-1");
  EXPECT_EQ(first.layer.type, DataflowLayerType::conv);
  EXPECT_EQ(first.layer.stride_x, 2);
  EXPECT_EQ(first.layer.sizes[LayerDim::Y], 224);
  EXPECT_EQ(first.layer.sizes[LayerDim::N], 0);
  ASSERT_EQ(first.dataflow.size(), 6u);
  EXPECT_EQ(first.dataflow[1].size.value(first.layer.sizes), 16);
  EXPECT_EQ(first.dataflow[2].size.value(first.layer.sizes), 14);
  EXPECT_EQ(first.dataflow[3].kind, DirectiveKind::cluster);
  EXPECT_EQ(first.dataflow[3].size.value(first.layer.sizes), 7);
  EXPECT_TRUE(first.dataflow[5].of_output);
  EXPECT_EQ(first.dataflow[0].line, 10);
}

TEST(DataflowFile, a_layer_without_a_dataflow_has_that_of_the_layer_before_it) {
  const MappedNetwork network = parse_mapped_network(two_layers, "test");
  EXPECT_EQ(network.layers[1].dataflow.size(), network.layers[0].dataflow.size());
}

TEST(DataflowFile, sizes_of_the_output_give_those_of_the_input_by_the_stride) {
  const MappedNetwork network = parse_mapped_network(two_layers, "test");
  EXPECT_EQ(network.layers[1].layer.sizes[LayerDim::X], 27 * 2 + 3);
  EXPECT_EQ(network.layers[1].layer.sizes[LayerDim::Y], 27 + 3);
}

TEST(DataflowFile, complaints_carry_the_line_and_the_nearest_name) {
  const InputProblem type = problem_of(layer_text("Type: DSCNV"));
  EXPECT_EQ(type.line, 3);
  EXPECT_EQ(type.value, "DSCNV");
  EXPECT_EQ(type.suggestion, "DSCONV");
  EXPECT_EQ(problem_of(layer_text("Type: CONV\nDataflow { TemporalMp(1,1) K }")).suggestion, "TemporalMap");
  EXPECT_EQ(problem_of(layer_text("Dimension { K: 1 }")).suggestion, "Dimensions");
  EXPECT_EQ(problem_of("Netwrk n { }").suggestion, "Network");
}

TEST(DataflowFile, a_wrong_file_is_refused) {
  const std::string sizes = "Type: CONV\nDimensions { K: 4, C: 4, R: 3, S: 3, Y: 8, X: 8 }\n";
  for (const std::string& text :
       {std::string(), std::string("Network n {"), layer_text(sizes), layer_text(sizes + "Dataflow { }"),
        layer_text("Dimensions { Q: 3 }"), layer_text("Dimensions { K: 0 }"), layer_text("Dimensions { K: 4, K: 4 }"),
        layer_text("Type: LSTM"), layer_text("Type: CONV\nDimensions { K: 4, C: 4 }\nDataflow { SpatialMap(1,1) K; }"),
        layer_text("Type: CONV\nDimensions { K: 4, C: 4, R: 9, S: 3, Y: 8, X: 8 }\nDataflow { SpatialMap(1,1) K; }"),
        layer_text(sizes + "Stride { K: 2 }"), layer_text(sizes + "Dataflow { SpatialMap(1,1 K; }"),
        layer_text(sizes + "Dataflow { Cluster(3, Q); }"),
        layer_text(sizes + "Dataflow { SpatialMap(Sz(Y'),1) K; }")}) {
    EXPECT_FALSE(problem_of(text).expected.empty()) << text;
  }
}

TEST(DataflowFile, directives_stand_alone_with_or_without_their_block) {
  const std::vector<Directive> bare = parse_directives("SpatialMap(1,1) K;\nCluster(8, L)", "test");
  const std::vector<Directive> block = parse_directives("Dataflow { SpatialMap(1,1) K; Cluster(8, L); }", "test");
  ASSERT_EQ(bare.size(), 2u);
  ASSERT_EQ(block.size(), 2u);
  for (size_t index = 0; index < 2; ++index) EXPECT_EQ(bare[index].text(), block[index].text());
  EXPECT_THROW(parse_directives("", "test"), InputError);
}

}  // namespace foretoken::dataflow_file_test
