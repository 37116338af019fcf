#include "accelerator/dataflow/cluster_level.h"

#include <gtest/gtest.h>

#include "accelerator/dataflow/dataflow_file.h"
#include "accelerator/dataflow/iteration_case.h"

namespace foretoken::cluster_level_test {

std::vector<ClusterLevel> levels_of(const std::string& layer, const std::string& dataflow, int64_t num_pes) {
  const MappedNetwork network =
      parse_mapped_network("Network n { Layer l { " + layer + " Dataflow { " + dataflow + " } } }", "test");
  return cluster_levels(network.layers.front().layer, network.layers.front().dataflow, num_pes, "test");
}

std::string order_of(const ClusterLevel& level) {
  std::string order;
  for (const MapDirective& map : level.maps) order += layer_dim_name(map.dim);
  return order;
}

const char* const plain_layer = "Type: CONV Dimensions { K: 8, C: 6, R: 3, S: 3, Y: 14, X: 14 }";

TEST(ClusterLevel, elements_are_shared_out_over_clusters) {
  const std::vector<ClusterLevel> levels = levels_of(
      plain_layer, "SpatialMap(1,1) K; Cluster(4,P); SpatialMap(1,1) C; Cluster(3,P); SpatialMap(1,1) R;", 100);
  ASSERT_EQ(levels.size(), 3u);
  EXPECT_EQ(levels[0].units, 8);  // 100 / (4 x 3), the rest idle
  EXPECT_EQ(levels[1].units, 4);
  EXPECT_EQ(levels[2].units, 3);
}

TEST(ClusterLevel, missing_maps_are_taken_over_from_outside_or_hold_everything) {
  const std::vector<ClusterLevel> levels =
      levels_of(plain_layer, "SpatialMap(1,1) K; TemporalMap(2,2) C; Cluster(4,P); SpatialMap(1,1) C;", 16);
  EXPECT_EQ(order_of(levels[0]), "KCRSXY");
  EXPECT_EQ(order_of(levels[1]), "YXSRKC");
  EXPECT_EQ(levels[0].map_of(LayerDim::Y).size, 14);
  EXPECT_EQ(levels[1].sizes[LayerDim::C], 2);
  EXPECT_FALSE(levels[1].map_of(LayerDim::K).is_spatial);
}

TEST(ClusterLevel, rows_step_by_whole_outputs_of_a_strided_layer) {
  const std::vector<ClusterLevel> levels =
      levels_of("Type: CONV Stride { X: 2, Y: 2 } Dimensions { K: 8, C: 6, R: 7, S: 7, Y: 224, X: 224 }",
                "SpatialMap(Sz(R),1) Y; TemporalMap(14,8) X; TemporalMap(3,3) K;", 16);
  EXPECT_EQ(levels[0].map_of(LayerDim::Y).size, 7);
  EXPECT_EQ(levels[0].map_of(LayerDim::Y).offset, 2);
  EXPECT_EQ(levels[0].map_of(LayerDim::X).size, 13);  // four windows
  EXPECT_EQ(levels[0].map_of(LayerDim::X).offset, 8);
}

TEST(ClusterLevel, a_map_of_outputs_is_one_of_the_rows_they_need) {
  const std::vector<ClusterLevel> levels = levels_of(plain_layer, "SpatialMap(1,1) K; TemporalMap(4,4) Y';", 16);
  EXPECT_EQ(levels[0].map_of(LayerDim::Y).size, 6);
  EXPECT_EQ(levels[0].map_of(LayerDim::Y).offset, 4);
}

TEST(ClusterLevel, the_last_round_keeps_only_some_units_busy) {
  EXPECT_EQ(levels_of(plain_layer, "SpatialMap(1,1) K;", 5)[0].edge_units, 3);
  EXPECT_EQ(levels_of(plain_layer, "SpatialMap(1,1) K;", 16)[0].edge_units, 8);
  EXPECT_EQ(levels_of(plain_layer, "SpatialMap(Sz(R),1) Y;", 16)[0].edge_units, 12);
  EXPECT_EQ(resized(levels_of(plain_layer, "SpatialMap(1,1) K;", 16)[0], {}).edge_units, 1);
}

TEST(IterationCase, cases_begin_with_the_first_step_and_count_every_step_once) {
  const ClusterLevel level = levels_of(
      plain_layer, "SpatialMap(1,1) K; TemporalMap(4,4) C; TemporalMap(Sz(R),1) Y; TemporalMap(5,3) X;", 3)[0];
  for (const DataflowReading reading : {DataflowReading::maestro, DataflowReading::physical}) {
    const std::vector<IterationCase> cases = iteration_cases(level, level.sizes, reading);
    EXPECT_TRUE(cases.front().is_first_step());
    int64_t steps = 0;
    for (size_t index = 0; index < cases.size(); ++index) {
      EXPECT_EQ(cases[index].is_first_step(), index == 0);
      steps += cases[index].steps;
    }
    EXPECT_EQ(steps, 3 * 2 * 12 * 4);  // rounds of filters, tiles of channels, rows, tiles of columns
  }
}

}  // namespace foretoken::cluster_level_test
