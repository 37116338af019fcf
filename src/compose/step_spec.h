// One step of a model, asked in names: what is opened from the library, and what comes out.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "compose/model_spec.h"
#include "compose/serving_engine.h"
#include "compose/stack.h"
#include "compose/step_estimate.h"
#include "hardware/catalogue.h"
#include "library/device_models.h"
#include "network/rank_places.h"

namespace foretoken {

struct StepSpec {
  ModelSpec model;
  std::string device;
  StepRequest request = {};  // its kv_dtype is the model's choice
  ParallelPlan plan = {};
  std::string stack = {};  // software that runs the step; empty = vllm, or fused for training
  std::optional<Dispatch> dispatch = {};
  std::optional<EngineFlags> engine = {};  // whose CUDA graphs there are; nothing = those that the stack lists
  double host_factor = 1;
  bool two_batch_overlap = false;  // as ExecutionOptions
  Tier tier = Tier::best;
  PlacementSpec placement = {};  // node or cluster, links, and how ranks lie on it
};

struct StepPrediction {
  Model model;  // as it runs on the device
  DeviceModels models;
  Stack stack;
  StepEstimate step;

  const Device& device() const { return models.kernels.device(); }
};

// With the ranks in the order of training frameworks where the step trains and nobody says.
PlacementSpec placement_of(const StepSpec& spec);

// Answers one question after the other; models, devices and stacks that several name are opened once. One for each
// thread.
class StepPredictor {
 public:
  // Of the library, which outlives it. `models`: in place of the library's own predictors of a device.
  explicit StepPredictor(const Library& library, DeviceModelMaker models = {});

  // InputError names what is unknown or does not go together.
  StepPrediction predict(const StepSpec& spec);

 private:
  const Model& model_of(const StepSpec& spec);
  const DeviceModels& models_of(const StepSpec& spec);
  const Stack& stack_named(const std::string& name);

  const Library& library_;
  DeviceModelMaker make_models_;
  HardwareCatalogue hardware_;
  StackCatalogue stacks_;
  std::map<std::string, Model> models_;          // by all that a spec says of one
  std::map<std::string, DeviceModels> devices_;  // by device, tier, ranks and their places
  std::map<std::string, Stack> stacks_by_name_;
};

// InputError names what is unknown or does not go together.
StepPrediction predict_step(const Library& library, const StepSpec& spec);

}  // namespace foretoken
