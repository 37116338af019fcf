// One step of a model, asked in names: what is opened from the library, and what comes out.
#pragma once

#include <optional>
#include <string>

#include "compose/model_spec.h"
#include "compose/stack.h"
#include "compose/step_estimate.h"
#include "library/device_models.h"

namespace foretoken {

struct StepSpec {
  ModelSpec model;
  std::string device;
  StepRequest request = {};  // its kv_dtype is the model's choice
  ParallelPlan plan = {};
  std::string stack = {};  // software that runs the step; empty = vllm, or fused for training
  std::optional<Dispatch> dispatch = {};
  double host_factor = 1;
  Tier tier = Tier::best;
};

struct StepPrediction {
  Model model;  // as it runs on the device
  DeviceModels models;
  Stack stack;
  StepEstimate step;

  const Device& device() const { return models.kernels.device(); }
};

// InputError names what is unknown or does not go together.
StepPrediction predict_step(const Library& library, const StepSpec& spec);

}  // namespace foretoken
