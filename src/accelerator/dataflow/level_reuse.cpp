#include "accelerator/dataflow/level_reuse.h"

#include <algorithm>
#include <utility>

namespace foretoken {
namespace {

bool follows(std::span<const LayerDim> tensor, LayerDim dim) {
  return std::ranges::find(tensor, dim) != tensor.end();
}

// Rows of output that `rows` of input give; MAESTRO goes on below a whole window, and without strides.
int64_t output_count(int64_t rows, int64_t window, int64_t stride, DataflowReading reading) {
  return reading == DataflowReading::physical ? output_rows(rows, window, stride) : rows - window + 1;
}

int64_t at_least_one_if_none(int64_t fresh) {
  return fresh == 0 ? 1 : fresh;
}

}  // namespace

LevelReuse::LevelReuse(ClusterLevel level, const DataflowLayer& layer, DataflowReading reading)
    : level_(std::move(level)), reading_(reading) {
  for (const MapDirective& map : level_.maps) {
    const int64_t size = level_.sizes[map.dim];
    const int64_t steady = std::max<int64_t>((size - map.size) / map.offset, 0);
    const bool has_edge = steady * map.offset + map.size < size || map.size > size;
    const int64_t left = size - (steady + 1) * map.offset;
    // MAESTRO takes an offset off a tile larger than what there is where it can, and has no edge where tiles end
    // evenly.
    const bool is_maestro = reading == DataflowReading::maestro;
    const bool holds_all = !is_maestro && map.size > size;
    const int64_t rest = left < 0 || holds_all ? size : left;
    const int64_t edge = is_maestro || has_edge ? rest : map.size;
    const bool stays_in_place = !map.is_spatial && size <= map.size;
    tiles_[map.dim] = {.whole = map.size,
                       .fresh = stays_in_place ? 0 : std::min(map.size, map.offset),
                       .edge = has_edge ? edge : map.size,
                       .fresh_edge = std::max<int64_t>(map.offset - (map.size - edge), 0)};
  }
  for (const MapDirective& map : level_.maps) {
    const std::optional<LayerDim> window = window_of(map.dim);
    if (!window) continue;
    const Tile& rows = tiles_[map.dim];
    const Tile& filter = tiles_[*window];
    const int64_t stride = reading == DataflowReading::physical ? layer.stride(map.dim) : 1;
    const int64_t edge = output_count(rows.edge, filter.edge, stride, reading);
    const int64_t fresh = std::max(std::min(map.offset, map.size) / stride, int64_t{1});
    Tile& output = map.dim == LayerDim::Y ? output_rows_ : output_columns_;
    output = {.whole = output_count(rows.whole, filter.whole, stride, reading),
              .fresh = fresh,
              .edge = edge,
              .fresh_edge = std::min(map.offset / stride, edge)};
  }
}

const LevelReuse::Tile& LevelReuse::output_tile(LayerDim dim) const {
  if (dim == LayerDim::Y) return output_rows_;
  if (dim == LayerDim::X) return output_columns_;
  return tiles_[dim];
}

LevelReuse::SpatialStep LevelReuse::spatial_step(std::span<const LayerDim> tensor, const IterationCase& step) const {
  SpatialStep spatial;
  for (const LayerDim dim : tensor) {
    if (!level_.map_of(dim).is_spatial) continue;
    spatial.is_mapped = true;
    spatial.is_partial |= step.along[dim].is_partial;
    spatial.last_unit_partial = step.along[dim].last_unit_partial;
  }
  return spatial;
}

LevelReuse::SpatialStep LevelReuse::spatial_step_of_maps(const IterationCase& step) const {
  SpatialStep spatial;
  for (const MapDirective& map : level_.maps) {
    if (!map.is_spatial) continue;
    spatial.is_mapped = true;
    spatial.is_partial |= step.along[map.dim].is_partial;
    spatial.last_unit_partial = step.along[map.dim].last_unit_partial;
  }
  return spatial;
}

template <class Volume>
int64_t LevelReuse::over_units(const SpatialStep& spatial, Sharing sharing, const Volume& volume) const {
  const Unit other{.is_first = sharing == Sharing::none};
  if (!spatial.is_mapped) return volume(Unit{});
  if (!spatial.is_partial) return volume(Unit{}) + (level_.units - 1) * volume(other);
  const int64_t partial_units = spatial.last_unit_partial ? 1 : 0;
  if (level_.edge_units == 1) return volume(Unit{.is_last_partial = partial_units == 1});
  return volume(Unit{}) + std::max<int64_t>(level_.edge_units - partial_units - 1, 0) * volume(other) +
         partial_units * volume(Unit{.is_first = false, .is_last_partial = true});
}

int64_t LevelReuse::held(std::span<const LayerDim> tensor, const IterationCase& step, Unit unit) const {
  int64_t volume = 1;
  for (const MapDirective& map : level_.maps) {
    if (!follows(tensor, map.dim)) continue;
    const Tile& tile = tiles_[map.dim];
    if (!step.along[map.dim].is_partial) {
      volume *= tile.whole;
    } else if (!map.is_spatial || unit.is_last_partial || (level_.edge_units == 1 && unit.is_first)) {
      volume *= tile.edge;
    } else if (level_.edge_units > 1) {
      volume *= tile.whole;
    }
  }
  return volume;
}

LevelReuse::Movement LevelReuse::movement(std::span<const LayerDim> tensor, const IterationCase& step) const {
  Movement movement;
  for (size_t index = 0; index < level_.maps.size(); ++index) {
    if (step.along[level_.maps[index].dim].position != StepPosition::first) movement.moved = static_cast<int>(index);
  }
  for (size_t index = 0; index < level_.maps.size(); ++index) {
    const DimStep& along = step.along[level_.maps[index].dim];
    if (!follows(tensor, level_.maps[index].dim)) continue;
    if (static_cast<int>(index) == movement.moved) movement.of_tensor = true;
    if (static_cast<int>(index) <= movement.moved) continue;
    movement.started_anew |= along.position == StepPosition::first && !along.holds_all;
  }
  return movement;
}

bool LevelReuse::stays(const Movement& movement) const {
  if (movement.moved < 0 || movement.of_tensor) return false;
  // MAESTRO keeps the tensor even where its inner loops start over and need its beginning again.
  return !movement.started_anew || reading_ == DataflowReading::maestro;
}

int64_t LevelReuse::loaded(std::span<const LayerDim> tensor, const IterationCase& step, Unit unit) const {
  const auto [moved, of_tensor, started_anew] = movement(tensor, step);
  if (moved < 0 && reading_ == DataflowReading::maestro) return held(tensor, step, unit);
  if (stays({moved, of_tensor, started_anew})) return 0;

  int64_t volume = 1;
  for (size_t index = 0; index < level_.maps.size(); ++index) {
    const MapDirective& map = level_.maps[index];
    if (!follows(tensor, map.dim)) continue;
    const DimStep& along = step.along[map.dim];
    const Tile& tile = tiles_[map.dim];
    const bool slides = static_cast<int>(index) == moved && !started_anew;
    const bool is_first = along.position == StepPosition::first;
    if (!map.is_spatial) {
      // To MAESTRO only the first tile can be a partial one.
      const bool at_edge = along.is_partial && (is_first || reading_ == DataflowReading::physical);
      const int64_t fresh = at_edge ? tile.fresh_edge : std::max<int64_t>(tile.fresh, 1);
      volume *= !is_first && slides ? fresh : (at_edge ? tile.edge : tile.whole);
      continue;
    }
    // Neighbours share by multicast; MAESTRO has them share only in steps along the map itself or outside it.
    const bool neighbour_has_rest =
        reading_ == DataflowReading::physical || (is_first ? static_cast<int>(index) > moved : slides);
    if (unit.is_first || !neighbour_has_rest) {
      volume *= unit.is_last_partial ? tile.edge : tile.whole;
    } else {
      volume *= unit.is_last_partial ? tile.fresh_edge : tile.fresh;
    }
  }
  return volume;
}

int64_t LevelReuse::outputs(std::span<const LayerDim> output, const IterationCase& step, Unit unit,
                            Sharing sharing) const {
  int64_t volume = 1;
  for (const LayerDim dim : output) {
    const DimStep& along = step.along[dim];
    const Tile& tile = output_tile(dim);
    if (!level_.map_of(dim).is_spatial) {
      volume *= along.is_partial ? tile.edge : tile.whole;
    } else if (along.position == StepPosition::last && level_.edge_units == 1) {
      // MAESTRO counts rows of the input here, not of the output.
      const Tile& counted = reading_ == DataflowReading::maestro ? tiles_[dim] : tile;
      if (unit.is_first || unit.is_last_partial) volume *= counted.edge;
    } else if (along.is_partial && unit.is_last_partial) {
      const bool shares = sharing == Sharing::with_neighbours || along.position == StepPosition::last;
      volume *= shares && level_.edge_units > 1 ? tile.fresh_edge : tile.edge;
    } else {
      volume *= unit.is_first ? tile.whole : at_least_one_if_none(tile.fresh);
    }
  }
  return volume;
}

int64_t LevelReuse::reductions(std::span<const LayerDim> output, const IterationCase& step, Unit unit) const {
  int64_t volume = 1;
  for (const MapDirective& map : level_.maps) {
    if (follows(output, map.dim)) continue;
    const DimStep& along = step.along[map.dim];
    const Tile& tile = tiles_[map.dim];
    if (!map.is_spatial) {
      volume *= along.is_partial ? tile.edge : tile.whole;
    } else if (along.position == StepPosition::last && level_.edge_units == 1) {
      if (unit.is_first || unit.is_last_partial) volume *= tile.edge;
    } else if (along.is_partial && unit.is_last_partial) {
      volume *= along.position == StepPosition::last ? tile.fresh_edge : tile.edge;
    } else {
      volume *= unit.is_first ? tile.whole : at_least_one_if_none(tile.fresh);
    }
  }
  return volume;
}

int64_t LevelReuse::ingress(std::span<const LayerDim> tensor, const IterationCase& step) const {
  return over_units(spatial_step(tensor, step), Sharing::with_neighbours,
                    [&](Unit unit) { return loaded(tensor, step, unit); });
}

int64_t LevelReuse::egress(std::span<const LayerDim> output, const IterationCase& step) const {
  // MAESTRO sends partial sums up in every step, also where the next one adds to the same.
  if (reading_ == DataflowReading::physical && stays(movement(output, step))) return 0;
  return over_units(spatial_step(output, step), Sharing::with_neighbours,
                    [&](Unit unit) { return outputs(output, step, unit, Sharing::with_neighbours); });
}

int64_t LevelReuse::macs(std::span<const LayerDim> output, const IterationCase& step) const {
  return over_units(spatial_step_of_maps(step), Sharing::none, [&](Unit unit) {
    return reductions(output, step, unit) *
           outputs(output, step, unit, unit.is_first ? Sharing::with_neighbours : Sharing::none);
  });
}

int64_t LevelReuse::critical_macs(std::span<const LayerDim> output, const IterationCase& step) const {
  const SpatialStep spatial = spatial_step(output, step);
  const Unit busiest{.is_last_partial = spatial.is_partial && spatial.last_unit_partial && level_.edge_units == 1};
  return reductions(output, step, busiest) * outputs(output, step, busiest, Sharing::with_neighbours);
}

int64_t LevelReuse::held_by_unit(std::span<const LayerDim> tensor) const {
  int64_t volume = 1;
  for (const LayerDim dim : tensor) volume *= tiles_[dim].whole;
  return volume;
}

DimSizes LevelReuse::sizes_below(const IterationCase& step, bool last_unit) const {
  DimSizes sizes;
  for (const MapDirective& map : level_.maps) {
    if (sizes[map.dim] != 0) continue;
    const Tile& tile = tiles_[map.dim];
    const bool is_edge = step.along[map.dim].is_partial && (!map.is_spatial || last_unit || level_.edge_units == 1);
    sizes[map.dim] = is_edge ? tile.edge : tile.whole;
  }
  return sizes;
}

}  // namespace foretoken
