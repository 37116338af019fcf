#include "training/pipeline_layout.h"

#include <algorithm>

namespace foretoken {
namespace {

ChunkMix mix_of(const ChunkLayers& chunk, int64_t recompute_layers, const std::vector<size_t>& kind_of_layer,
                size_t kinds) {
  ChunkMix mix{.recomputed = std::vector<double>(kinds, 0),
               .spared = std::vector<double>(kinds, 0),
               .embedding = chunk.embedding,
               .head = chunk.head,
               .drafts = chunk.drafts};
  const int64_t recomputed = recompute_layers == 0 ? chunk.count : recompute_layers;
  for (int64_t i = 0; i < chunk.count; ++i) {
    const size_t kind = kind_of_layer[static_cast<size_t>(chunk.first + i)];
    (i < recomputed ? mix.recomputed : mix.spared)[kind] += 1;
  }
  return mix;
}

}  // namespace

PipelineLayout pipeline_layout(const TrainingPlan& plan, const std::vector<size_t>& kind_of_layer, size_t kinds) {
  PipelineLayout layout;
  for (const ChunkLayers& chunk : chunk_layers(plan, static_cast<int64_t>(kind_of_layer.size()))) {
    ChunkMix mix = mix_of(chunk, plan.recompute_layers, kind_of_layer, kinds);
    const auto found = std::find(layout.mixes.begin(), layout.mixes.end(), mix);
    layout.mix_of_chunk.push_back(static_cast<size_t>(found - layout.mixes.begin()));
    if (found == layout.mixes.end()) layout.mixes.push_back(std::move(mix));
  }
  layout.copies = static_cast<size_t>(model_copies(plan.schedule));
  const PipelineWork work = pipeline_work(plan);
  for (size_t copy = 0; copy < layout.copies; ++copy) {
    for (int64_t chunk = 0; chunk < plan.chunks(); ++chunk) {
      const int64_t stage = stage_of_chunk(plan.schedule, work, chunk, static_cast<int64_t>(copy));
      layout.stage_of.push_back(static_cast<size_t>(stage));
    }
  }
  return layout;
}

LayoutKey layout_key(const TrainingPlan& plan) {
  return {.schedule = plan.schedule,
          .stages = plan.stages(),
          .virtual_stages = plan.virtual_stages,
          .recompute_layers = plan.recompute_layers,
          .first_stage_layers = plan.first_stage_layers,
          .last_stage_layers = plan.last_stage_layers,
          .embedding_in_split = plan.embedding_in_split,
          .loss_in_split = plan.loss_in_split,
          .layout = plan.layout};
}

}  // namespace foretoken
