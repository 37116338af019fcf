// How layers are cut into the chunks of a pipeline where they are not simply shared out: Megatron-LM's text for it, and
// the cut that leaves the chunks most alike.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/model.h"
#include "training/training_plan.h"

namespace foretoken {

// As --pipeline-model-parallel-layout writes it: E embedding, t layer, m layer for multi-token prediction, L loss, |
// between chunks, x*3 and (x|y)*3 for repetition; commas and spaces mean nothing. InputError with the position.
std::vector<ChunkLayers> parse_pipeline_layout(std::string_view text);
std::string pipeline_layout_text(const std::vector<ChunkLayers>& layout);

// Layers, draft layers and the loss in 1, 2, ... chunks (entry 0 is empty), none without any, with the least sum of
// squares of their FLOPs: as many as asked for, or as there are things to put into them.
std::vector<std::vector<ChunkLayers>> balanced_layouts(const Model& model, int64_t sequence_length, int64_t most);

// Whether nothing says how layers are cut and they do not divide, or layers for multi-token prediction would all lie on
// the last stage.
bool needs_layout(const TrainingPlan& plan, const Model& model);

// Gives a plan that needs one such a layout.
void balance_stages(TrainingPlan& plan, const Model& model, int64_t sequence_length);

}  // namespace foretoken
