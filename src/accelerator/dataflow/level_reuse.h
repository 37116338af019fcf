// Reuse analysis: how many numbers of each tensor enter and leave a level of clusters in one kind of step, given what
// stays in place from the step before and what neighbours share.
#pragma once

#include <cstdint>
#include <span>

#include "accelerator/dataflow/cluster_level.h"
#include "accelerator/dataflow/dataflow_layer.h"
#include "accelerator/dataflow/iteration_case.h"

namespace foretoken {

class LevelReuse {
 public:
  LevelReuse(ClusterLevel level, const DataflowLayer& layer, DataflowReading reading);

  // Numbers of an input tensor that the shared buffer sends in this step; one that several units need is sent once.
  int64_t ingress(std::span<const LayerDim> tensor, const IterationCase& step) const;
  // Outputs that the units send up in this step.
  int64_t egress(std::span<const LayerDim> output, const IterationCase& step) const;
  // Multiplications of all units together in this step.
  int64_t macs(std::span<const LayerDim> output, const IterationCase& step) const;
  // Multiplications of the busiest unit; zero or less where the tile of the input is smaller than that of the filter,
  // which MAESTRO takes for no work.
  int64_t critical_macs(std::span<const LayerDim> output, const IterationCase& step) const;

  // Numbers of a tensor that one unit holds, counted in its own dimensions (rows and columns of the input for the
  // output).
  int64_t held_by_unit(std::span<const LayerDim> tensor) const;

  // What a unit below is given in this step; `last_unit`: the last one at work, which may have less.
  DimSizes sizes_below(const IterationCase& step, bool last_unit) const;

 private:
  // Sizes along one dimension: a whole tile, the part of it that is new after a step, and both at the end.
  struct Tile {
    int64_t whole = 0;
    int64_t fresh = 0;
    int64_t edge = 0;
    int64_t fresh_edge = 0;
  };

  // Which unit a volume is asked for: the first one has no neighbour to share with, the last one may have less to do.
  struct Unit {
    bool is_first = true;
    bool is_last_partial = false;
  };
  enum class Sharing : uint8_t { with_neighbours, none };

  struct SpatialStep {
    bool is_mapped = false;
    bool is_partial = false;
    bool last_unit_partial = false;
  };

  // What changed since the step before, as one tensor sees it.
  struct Movement {
    int moved = -1;             // the innermost map that went on: those inside started over, those outside stood still
    bool of_tensor = false;     // it is one of the tensor's
    bool started_anew = false;  // a map of the tensor inside it started over
  };

  template <class Volume>
  int64_t over_units(const SpatialStep& spatial, Sharing sharing, const Volume& volume) const;

  SpatialStep spatial_step(std::span<const LayerDim> tensor, const IterationCase& step) const;
  SpatialStep spatial_step_of_maps(const IterationCase& step) const;
  Movement movement(std::span<const LayerDim> tensor, const IterationCase& step) const;
  bool stays(const Movement& movement) const;
  int64_t loaded(std::span<const LayerDim> tensor, const IterationCase& step, Unit unit) const;
  int64_t held(std::span<const LayerDim> tensor, const IterationCase& step, Unit unit) const;
  int64_t outputs(std::span<const LayerDim> output, const IterationCase& step, Unit unit, Sharing sharing) const;
  int64_t reductions(std::span<const LayerDim> output, const IterationCase& step, Unit unit) const;
  const Tile& output_tile(LayerDim dim) const;

  ClusterLevel level_;
  DataflowReading reading_;
  PerDim<Tile> tiles_;
  Tile output_rows_;
  Tile output_columns_;
};

}  // namespace foretoken
