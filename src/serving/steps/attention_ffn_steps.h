// Step times where attention with its KV cache and the feed-forward layers run on different devices, and micro-batches
// go to and fro between them.
#pragma once

#include <cstdint>
#include <memory>

#include "base/units.h"
#include "serving/steps/composed_steps.h"
#include "serving/steps/step_times.h"

namespace foretoken {

// The devices that hold the feed-forward layers, and the way to them.
struct FfnPool {
  DeviceModels models;
  int64_t devices = 1;           // experts are spread over them; dense layers are cut into as many parts
  int64_t attention_groups = 1;  // groups of attention devices, each with the whole attention, that share the pool
  int64_t micro_batches = 3;     // of a step, fewer where it has fewer tokens
  BytesPerSecond attention_port, ffn_port;  // of each device, each direction
  Seconds latency;                          // of a transfer from all attention devices to all others, or back
};

// The model with the layers of one side alone. Embedding and head stay with attention.
Model attention_part(Model model);
Model ffn_part(Model model);

ParallelPlan ffn_plan(const Model& model, const FfnPool& pool);

// Copies of a token that go to the pool: one to each device that has an expert of it, on average under random routing;
// to every device where the layer is dense.
double token_copies(const Layer& layer, int64_t devices);

// One layer of one micro-batch.
struct PingPongStages {
  double attention = 0, ffn = 0;
  double dispatch = 0, combine = 0;  // the transfers there and back, each on links of its own
};

// All layers of `micro_batches`: each goes through the four stages of a layer in turn, and a stage takes one at a time.
// A layer takes all of them the longer of one through all stages and all through the slowest stage. Where m >= 2 (1 +
// transfer / ffn) hides the transfers and attention takes as long as the experts this is MegaScale-Infer's time of an
// iteration, attention + ffn + 2 transfers + ffn (m layers - 1) (arXiv 2504.02263, section 4.1).
double ping_pong_seconds(const PingPongStages& stages, int64_t micro_batches, int64_t layers);

// `attention` is of one group: its plan and device. Prompts are cut into micro-batches like decodes.
std::unique_ptr<StepTimes> attention_ffn_steps(ComposedStepsConfig attention, FfnPool pool);

}  // namespace foretoken
