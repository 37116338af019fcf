#include "accelerator/dataflow/cluster_level.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"

namespace foretoken {
namespace {

constexpr size_t most_cluster_levels = 8;
constexpr double most_work_of_a_step = 1e18;  // products of mapped sizes stay within an int64_t

int64_t units_in_last_round(const ClusterLevel& level) {
  const MapDirective& map = level.first_spatial_map();
  const int64_t size = level.sizes[map.dim];
  if (size <= map.size) return 1;
  const int64_t one_round = map.offset * (level.units - 1) + map.size;
  if (size <= one_round) {
    const int64_t whole = (size - map.size) / map.offset + 1;
    return whole + (map.offset * (whole - 1) + map.size < size ? 1 : 0);
  }
  const int64_t full_rounds = ((size - map.size) / map.offset + 1) / level.units;
  const int64_t left = size - full_rounds * map.offset * level.units;
  return left < map.size ? 1 : (left - map.size) / map.offset + 1;
}

class ClusterAnalysis {
 public:
  ClusterAnalysis(const DataflowLayer& layer, const std::string& source) : layer_(layer), source_(source) {}

  std::vector<ClusterLevel> levels(std::span<const Directive> dataflow, int64_t num_pes) const {
    std::vector<ClusterLevel> levels(1);
    int64_t elements_per_cluster = 1;  // of the first level
    for (const Directive& directive : dataflow) {
      if (directive.kind != DirectiveKind::cluster) {
        levels.back().maps.push_back(map_directive(directive, dataflow));
        continue;
      }
      if (levels.size() == most_cluster_levels) {
        reject(directive, fmt::format("at most {} levels of clusters", most_cluster_levels));
      }
      const int64_t size = value_of(directive.size, directive);
      elements_per_cluster *= size;
      if (elements_per_cluster > num_pes) {
        reject(directive, fmt::format("clusters of at most {} elements, which is all there are", num_pes));
      }
      levels.push_back({.units = size});
    }
    levels.front().units = num_pes / elements_per_cluster;

    for (size_t index = 0; index < levels.size(); ++index) complete(levels, index);
    return levels;
  }

 private:
  [[noreturn]] void reject(const Directive& directive, std::string expected) const {
    throw InputError({.source = source_,
                      .line = directive.line,
                      .path = layer_.name.empty() ? "dataflow" : fmt::format("dataflow of {}", printable(layer_.name)),
                      .value = directive.text(),
                      .expected = std::move(expected)});
  }

  [[noreturn]] void reject_level(size_t index, std::string value, std::string expected) const {
    throw InputError({.source = source_,
                      .path = fmt::format("cluster level {}", index + 1),
                      .value = std::move(value),
                      .expected = std::move(expected)});
  }

  int64_t value_of(const SizeExpression& expression, const Directive& directive) const {
    const int64_t value = expression.value(layer_.sizes);
    if (value < 1 || value > 1'000'000'000) reject(directive, "sizes between 1 and 1000000000");
    return value;
  }

  MapDirective map_directive(const Directive& directive, std::span<const Directive> dataflow) const {
    if (layer_.sizes[directive.dim] == 0) reject(directive, "a dimension of the layer");
    MapDirective map{.dim = directive.dim,
                     .is_spatial = directive.kind == DirectiveKind::spatial_map,
                     .size = value_of(directive.size, directive),
                     .offset = value_of(directive.offset, directive)};
    if (directive.of_output) {  // n outputs need this much of the input
      map.size = (map.size - 1) * layer_.stride(map.dim) + window_in(dataflow, *window_of(map.dim));
    }
    return map;
  }

  // How much of the window the dataflow holds at a time; all of it where it does not say.
  int64_t window_in(std::span<const Directive> dataflow, LayerDim window) const {
    for (const Directive& directive : dataflow) {
      if (directive.kind != DirectiveKind::cluster && directive.dim == window)
        return value_of(directive.size, directive);
    }
    return layer_.sizes[window];
  }

  void complete(std::vector<ClusterLevel>& levels, size_t index) const {
    ClusterLevel& level = levels[index];
    const ClusterLevel* above = index == 0 ? nullptr : &levels[index - 1];
    set_sizes(level, above);
    add_missing(level, above);
    for (MapDirective& map : level.maps) follow_stride(map, above == nullptr);
    check(level, index);
    level.edge_units = units_in_last_round(level);
  }

  void set_sizes(ClusterLevel& level, const ClusterLevel* above) const {
    level.sizes = layer_.sizes;
    if (above == nullptr) return;
    for (const LayerDim dim : all_layer_dims) {
      if (layer_.sizes[dim] != 0) level.sizes[dim] = std::min(above->map_of(dim).size, above->sizes[dim]);
    }
  }

  static bool has_map(const ClusterLevel& level, LayerDim dim) {
    return std::ranges::find(level.maps, dim, &MapDirective::dim) != level.maps.end();
  }

  void add_missing(ClusterLevel& level, const ClusterLevel* above) const {
    if (above != nullptr) {
      for (const MapDirective& map : above->maps) {
        if (has_map(level, map.dim)) continue;
        level.maps.insert(level.maps.begin(), {.dim = map.dim, .size = map.size, .offset = map.offset});
      }
    }
    using enum LayerDim;
    for (const LayerDim dim : {B, C, G, K, M, N, R, S, X, Y}) {
      const int64_t size = level.sizes[dim];
      if (size != 0 && !has_map(level, dim)) level.maps.push_back({.dim = dim, .size = size, .offset = size});
    }
  }

  // Offsets of rows and columns count outputs: n outputs at a time, the next n further on.
  void follow_stride(MapDirective& map, bool is_first_level) const {
    const int64_t stride = layer_.stride(map.dim);
    const std::optional<LayerDim> window_dim = window_of(map.dim);
    if (!window_dim || stride == 1) return;
    const int64_t window = layer_.sizes[*window_dim];
    if (map.size < window) return;
    const int64_t outputs = (map.size + stride - window) / stride;
    map.size = outputs * std::min(stride, window) + std::max<int64_t>(window - stride, 0);
    map.offset = outputs * (!is_first_level && window < stride ? window : stride);
  }

  void check(const ClusterLevel& level, size_t index) const {
    int64_t spatial_maps = 0;
    double work = 1;
    for (const MapDirective& map : level.maps) {
      if (map.is_spatial) ++spatial_maps;
      work *= static_cast<double>(std::max(map.size, level.sizes[map.dim]));
    }
    if (spatial_maps == 0 || spatial_maps > 2) {
      reject_level(index, fmt::format("{} spatial maps", spatial_maps), "one SpatialMap, or two that move together");
    }
    if (work > most_work_of_a_step) {
      reject_level(index, fmt::format("{:.3g} products of all sizes", work),
                   fmt::format("at most {:g}", most_work_of_a_step));
    }
  }

  const DataflowLayer& layer_;
  const std::string& source_;
};

}  // namespace

const MapDirective& ClusterLevel::first_spatial_map() const {
  const auto found = std::ranges::find(maps, true, &MapDirective::is_spatial);
  ensure(found != maps.end(), "a level has a spatial map");
  return *found;
}

const MapDirective& ClusterLevel::map_of(LayerDim dim) const {
  const auto found = std::ranges::find(maps, dim, &MapDirective::dim);
  ensure(found != maps.end(), "a level maps every dimension of the layer");
  return *found;
}

ClusterLevel resized(const ClusterLevel& level, const DimSizes& sizes) {
  ClusterLevel other = level;
  other.sizes = sizes;
  other.edge_units = units_in_last_round(other);
  return other;
}

std::vector<ClusterLevel> cluster_levels(const DataflowLayer& layer, std::span<const Directive> dataflow,
                                         int64_t num_pes, const std::string& source) {
  return ClusterAnalysis(layer, source).levels(dataflow, num_pes);
}

}  // namespace foretoken
