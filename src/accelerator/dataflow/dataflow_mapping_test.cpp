// Directives as a loop nest: the same work on a memory, L2, clusters, L1 and multipliers. Two ways of counting,
// MAESTRO's and that of loop nests, must agree.
#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "accelerator/architecture.h"
#include "accelerator/dataflow/cluster_level.h"
#include "accelerator/dataflow/dataflow_analysis.h"
#include "accelerator/dataflow/dataflow_file.h"
#include "accelerator/dataflow/dataflow_hardware.h"
#include "accelerator/dataflow/dataflow_layer.h"
#include "accelerator/dataflow/dataflow_library.h"
#include "accelerator/dataflow/directive.h"
#include "accelerator/dataflow/test_support.h"
#include "accelerator/evaluator.h"
#include "accelerator/mapping.h"
#include "accelerator/mapping_text.h"
#include "accelerator/problem.h"
#include "base/error.h"

namespace foretoken::dataflow_mapping_test {

struct DataflowMapping {
  Architecture architecture;
  Problem problem;
  Mapping mapping;
};

namespace {

constexpr double memory_access_in_macs = 200;  // Chen et al., ISCA 2016, table IV

Problem dataflow_problem(const DataflowLayer& layer) {
  using enum LayerDim;
  const DimSizes& sizes = layer.sizes;
  if (layer.type == DataflowLayerType::gemm || layer.type == DataflowLayerType::bmm) {
    return gemm_problem({.m = sizes[M], .n = sizes[N], .k = sizes[K], .batch = std::max(sizes[B], int64_t{1})});
  }
  const bool is_depthwise = layer.type == DataflowLayerType::depthwise_conv;
  const int64_t groups = is_depthwise ? sizes[C] : std::max(sizes[G], int64_t{1});
  return convolution_problem({.batch = std::max(sizes[N], int64_t{1}),
                              .in_channels = is_depthwise ? sizes[C] : sizes[C] * groups,
                              .out_channels = std::max(sizes[K], int64_t{1}) * groups,
                              .out_width = output_rows(sizes[Y], sizes[R], layer.stride_y),
                              .out_height = output_rows(sizes[X], sizes[S], layer.stride_x),
                              .kernel_width = sizes[R],
                              .kernel_height = sizes[S],
                              .stride_width = layer.stride_y,
                              .stride_height = layer.stride_x,
                              .groups = groups});
}

std::string_view dataflow_dimension(const DataflowLayer& layer, LayerDim dim) {
  if (layer.type == DataflowLayerType::gemm || layer.type == DataflowLayerType::bmm) {
    return dim == LayerDim::B ? "H" : layer_dim_name(dim);
  }
  if (dim == LayerDim::K) return "M";
  if (dim == LayerDim::Y) return "P";
  if (dim == LayerDim::X) return "Q";
  if (dim == LayerDim::C && layer.type == DataflowLayerType::depthwise_conv) return "G";
  return layer_dim_name(dim);
}

AcceleratorLevel buffer_level(std::string name, std::string component, double access_in_macs) {
  const double access_pj = access_in_macs * mac_picojoules;
  return {.name = std::move(name),
          .component = std::move(component),
          .energy = {.read_pj = access_pj, .fill_pj = access_pj, .update_pj = access_pj}};
}

std::optional<double> dataflow_limit(int64_t words_per_cycle) {
  if (words_per_cycle == unlimited_hardware) return std::nullopt;
  return static_cast<double>(words_per_cycle);
}

Architecture dataflow_architecture(const std::vector<ClusterLevel>& clusters, const DataflowHardware& hardware) {
  Architecture architecture{.name = "dataflow"};
  AcceleratorLevel memory = buffer_level("DRAM", "DRAM", memory_access_in_macs);
  memory.bandwidth.shared = dataflow_limit(hardware.offchip_bandwidth);
  architecture.levels.push_back(memory);
  AcceleratorLevel shared_buffer = buffer_level("L2", "SRAM", l2_access_in_macs);
  shared_buffer.depth = hardware.l2_bytes == unlimited_hardware ? 0 : hardware.l2_bytes;
  shared_buffer.buffers = 2;
  shared_buffer.bandwidth.read = dataflow_limit(hardware.noc_bandwidth);
  shared_buffer.bandwidth.write = dataflow_limit(hardware.noc_bandwidth);
  architecture.levels.push_back(shared_buffer);
  int64_t instances = 1;
  for (size_t index = 0; index + 1 < clusters.size(); ++index) {
    instances *= clusters[index].units;
    architecture.levels.push_back(
        {.name = fmt::format("cluster{}", index + 1), .kind = LevelKind::network, .instances_x = instances});
  }
  instances *= clusters.back().units;
  AcceleratorLevel element = buffer_level("L1", "regfile", l1_access_in_macs);
  element.instances_x = instances;
  element.depth = hardware.l1_bytes == unlimited_hardware ? 0 : hardware.l1_bytes;
  element.buffers = 2;
  architecture.levels.push_back(element);
  architecture.levels.push_back({.name = "MAC",
                                 .kind = LevelKind::compute,
                                 .component = "mac",
                                 .instances_x = instances,
                                 .energy = {.compute_pj = mac_picojoules}});
  return architecture;
}

class DataflowLoops {
 public:
  DataflowLoops(const DataflowLayer& layer, const Problem& problem, const std::string& source)
      : layer_(layer), problem_(problem), source_(source) {}

  std::vector<Loop> loops(const std::vector<ClusterLevel>& clusters) {
    for (size_t index = 0; index < clusters.size(); ++index) {
      const ClusterLevel& level = clusters[index];
      check_spatial_maps(level);
      for (const MapDirective& map : level.maps) add_map(level, map, static_cast<int>(index));
    }
    const ClusterLevel& last = clusters.back();
    const int l1 = static_cast<int>(clusters.size()) + 1;
    for (const MapDirective& map : last.maps) {
      add_loop(l1, map.dim, held(last, map), LoopKind::temporal);
    }
    return std::move(loops_);
  }

 private:
  [[noreturn]] void reject(const MapDirective& map, std::string expected) const {
    throw InputError({.source = source_,
                      .path = fmt::format("dataflow of {}", printable(layer_.name)),
                      .value = fmt::format("{}({},{}) {}", map.is_spatial ? "SpatialMap" : "TemporalMap", map.size,
                                           map.offset, layer_dim_name(map.dim)),
                      .expected = std::move(expected)});
  }

  // Two spatial maps move together along a diagonal. Of a window that slides along (Y with R) that is one output and
  // the window spread out; of anything else a loop nest cannot say it.
  void check_spatial_maps(const ClusterLevel& level) const {
    for (const MapDirective& map : level.maps) {
      if (!map.is_spatial || &map == &level.first_spatial_map()) continue;
      const MapDirective& first = level.first_spatial_map();
      const bool slides = window_of(first.dim) == map.dim || window_of(map.dim) == first.dim;
      if (!slides || first.size != map.size || first.offset != map.offset) {
        reject(map, "one spatial map in a cluster, or the same of Y and R, or of X and S");
      }
    }
  }

  static bool is_spread_window(const ClusterLevel& level, LayerDim dim) {
    const std::optional<LayerDim> window = window_of(dim);
    return window && level.map_of(dim).is_spatial && level.map_of(*window).is_spatial;
  }

  // In the problem's terms: outputs for rows and columns.
  int64_t given(const ClusterLevel& level, LayerDim dim) const {
    const std::optional<LayerDim> window = window_of(dim);
    return window ? output_rows(level.sizes[dim], level.sizes[*window], layer_.stride(dim)) : level.sizes[dim];
  }

  int64_t held(const ClusterLevel& level, const MapDirective& map) const {
    const std::optional<LayerDim> window = window_of(map.dim);
    if (!window) return std::min(map.size, level.sizes[map.dim]);
    if (is_spread_window(level, map.dim)) return given(level, map.dim);
    const int64_t window_size = std::min(level.map_of(*window).size, level.sizes[*window]);
    return output_rows(std::min(map.size, level.sizes[map.dim]), window_size, layer_.stride(map.dim));
  }

  void add_map(const ClusterLevel& level, const MapDirective& map, int index) {
    if (is_spread_window(level, map.dim)) return;
    if (std::ranges::count(level.maps, map.dim, &MapDirective::dim) > 1) {
      reject(map, "one map of a dimension in a cluster");
    }
    const int64_t size = given(level, map.dim);
    const int64_t tile = held(level, map);
    if (tile < 1) reject(map, "at least as many rows as the window has");
    if (tile >= size) return;
    const std::optional<LayerDim> window = window_of(map.dim);
    if (window && level.map_of(*window).size < level.sizes[*window]) {
      reject(map, fmt::format("all of {} in the same cluster", layer_dim_name(*window)));
    }
    if (map.offset != tile * layer_.stride(map.dim)) {
      reject(map, fmt::format("an offset of {}, so that no two steps do the same", tile * layer_.stride(map.dim)));
    }
    const int64_t tiles = (size + tile - 1) / tile;
    const int64_t at_once = map.is_spatial ? std::min(level.units, tiles) : 1;
    const int64_t rounds = (tiles + at_once - 1) / at_once;
    if (rounds * at_once * tile != size && has_loop(map.dim)) {
      reject(map, fmt::format("tiles that fill the {} of the cluster evenly", size));
    }
    // The memory steps through the first level; clusters step through theirs.
    add_loop(index == 0 ? 0 : index + 1, map.dim, rounds, LoopKind::temporal);
    add_loop(index + 1, map.dim, at_once, LoopKind::spatial_x);
  }

  bool has_loop(LayerDim dim) const {
    const int dimension = find_dimension(problem_, dataflow_dimension(layer_, dim));
    return std::ranges::any_of(loops_, [&](const Loop& loop) { return loop.dimension == dimension; });
  }

  void add_loop(int level, LayerDim dim, int64_t bound, LoopKind kind) {
    if (bound == 1) return;
    const int dimension = find_dimension(problem_, dataflow_dimension(layer_, dim));
    ensure(dimension >= 0, "a dimension with a loop is one of the problem");
    loops_.push_back({.level = level, .dimension = dimension, .bound = bound, .last = bound, .kind = kind});
  }

  const DataflowLayer& layer_;
  const Problem& problem_;
  const std::string& source_;
  std::vector<Loop> loops_;
};

}  // namespace

// Temporal maps of the first level become loops of the memory (L2 holds what one step of the array needs), those of
// inner levels loops of their cluster, spatial maps spread over the level below, and what an element holds is left to
// its L1. Energies are MAESTRO's, and for the memory 200 multiplications per word (Eyeriss, ISCA 2016).
//
//
// InputError (about `source`) for a directive that loops cannot express: tiles that overlap by more than
// the window, that do not fill a tile further out evenly, or two spatial maps in a cluster other than a window sliding
// along (Y with R, X with S).
DataflowMapping to_mapping(const DataflowLayer& layer, std::span<const Directive> dataflow,
                           const DataflowHardware& hardware, const std::string& source) {
  const DataflowLayer used = without_unused_input(layer);
  const std::vector<ClusterLevel> clusters = cluster_levels(used, dataflow, hardware.num_pes, source);
  DataflowMapping result{.architecture = dataflow_architecture(clusters, hardware), .problem = dataflow_problem(used)};
  result.mapping.loops = DataflowLoops(used, result.problem, source).loops(clusters);
  std::ranges::stable_sort(result.mapping.loops, {}, &Loop::level);
  const uint32_t all_tensors = (uint32_t{1} << result.problem.tensors.size()) - 1;
  for (size_t level = 0; level + 1 < result.architecture.levels.size(); ++level) {
    result.mapping.kept.push_back(result.architecture.levels[level].kind == LevelKind::network ? 0 : all_tensors);
  }
  set_remainders(result.mapping, result.problem);
  return result;
}

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
