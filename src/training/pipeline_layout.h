// Which layers lie on which pipeline stage, in the few different chunks that a plan has: what a layer costs is added up
// once for each of them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "training/training_plan.h"

namespace foretoken {

// What a chunk holds, whatever its place. One number for each kind of layer.
struct ChunkMix {
  std::vector<double> recomputed;  // layers among those that the plan computes again
  std::vector<double> spared;      // and the others
  bool embedding = false, head = false;
  int64_t drafts = 0;  // of the model's draft layers
  bool operator==(const ChunkMix&) const = default;
};

struct PipelineLayout {
  std::vector<ChunkMix> mixes;       // all different
  std::vector<size_t> mix_of_chunk;  // in the order a micro-batch passes the chunks
  std::vector<size_t> stage_of;      // of each chunk, in one copy of the model after the other
  size_t copies = 1;                 // of the model (DualPipe: 2)
};

// `kind_of_layer` numbers the model's layers by kind, from 0 to `kinds` - 1. The plan must be valid.
PipelineLayout pipeline_layout(const TrainingPlan& plan, const std::vector<size_t>& kind_of_layer, size_t kinds);

// All that a plan's layout depends on, besides the model.
struct LayoutKey {
  std::string schedule;
  int64_t stages = 1, virtual_stages = 1, recompute_layers = 0;
  std::optional<int64_t> first_stage_layers, last_stage_layers;
  bool embedding_in_split = false, loss_in_split = false;
  std::vector<ChunkLayers> layout;
  auto operator<=>(const LayoutKey&) const = default;
};
LayoutKey layout_key(const TrainingPlan& plan);

}  // namespace foretoken
