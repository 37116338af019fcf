// Step times from the composition layer: any model, device, stack and plan, no measured table.
#pragma once

#include <memory>

#include "base/number_format.h"
#include "compose/stack.h"
#include "library/device_models.h"
#include "model/model.h"
#include "model/step.h"
#include "serving/steps/step_times.h"

namespace foretoken {

struct ComposedStepsConfig {
  Model model;
  ParallelPlan plan;
  DeviceModels models;
  Stack stack;
  DType kv_dtype = DType::bf16;
  // Tokens go through the layers as two batches: while one is computed, the other's travel to experts and back
  // (DeepSeek-V3, SGLang's --enable-two-batch-overlap).
  bool two_batch_overlap = false;
};

// A step of a serving engine in three parts, so that a batch that never came before costs well below a microsecond:
//   frame      everything that only depends on the number of tokens, gaps included, and the time the host needs to
//              launch it all, which is the least that a step takes: kept for each captured graph size, interpolated
//              between multiples of 64 tokens beyond
//   head       by the number of sequences that yield a token
//   attention  by the number of decodes, their mean and longest context, and the number, mean tokens and context of the
//              prompts: interpolated on a grid (size_grid.h) with four steps to each doubling, two in mixed steps
//   drafts     that decodes verify are tokens of the frame, rows of the head, and more queries of the attention
std::unique_ptr<StepTimes> compose_steps(ComposedStepsConfig config);

}  // namespace foretoken
