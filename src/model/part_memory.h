// What each part of a model takes on one rank of a training run: layers, embedding and head, so that others can put
// them on pipeline stages as they like.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "model/model.h"
#include "model/step.h"

namespace foretoken {

// What a training stack keeps beside the operators' inputs.
struct SavedTensors {
  bool dropout = false;         // a mask of one byte per element after each block (GPT models until about 2022)
  bool flash_attention = true;  // else the scores stay: softmax, and with dropout its mask and output
};

struct PartMemory {
  double parameters = 0;          // of this rank, without those below
  double expert_parameters = 0;   // routed experts
  double adapter_parameters = 0;  // LoRA
  Bytes saved;                    // kept of one micro-batch for the backward pass, logits left out
  Bytes scores;                   // of `saved`: what computing the attention core again spares
  Bytes input;                    // of a layer: what enters it, which is all that stays when it is computed again
  Bytes logits;                   // of the head
  Bytes working;                  // inputs and outputs of the widest operator: their gradients in the backward pass
};

struct ModelParts {
  std::vector<PartMemory> encoder_layers, layers;
  std::vector<PartMemory> draft_layers;  // each predicts one token more, with the head
  PartMemory embedding;                  // with the ends of an encoder
  PartMemory head;
  double tied_table = 0;  // parameters of the head's copy of the token table where it lies on another stage
};

// One micro-batch is `request.batch` sequences. Pipeline stages play no part. The plan must fit the model.
ModelParts model_parts(const Model& model, const StepRequest& request, const ParallelPlan& plan,
                       const SavedTensors& saved = {});

}  // namespace foretoken
