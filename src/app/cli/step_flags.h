// The flags that describe a model step; shared by every command that runs one. vLLM's names where it has them.
#pragma once

#include <string>

#include "app/cli/library.h"
#include "app/cli/options.h"
#include "model/step.h"

namespace foretoken {

struct StepFlags {
  std::string model;
  std::string device;
  std::string phase = "decode";
  std::string quantization;  // empty = as the model's config says
  std::string kv_cache_dtype = "auto";
  std::string routing = "balanced";
  bool enable_expert_parallel = false;
  StepRequest request{.batch = 1, .input_len = 1024, .context_len = 0};
  ParallelPlan plan;

  void declare(Options& options);

  Model read_model(const Library& library) const;
  StepRequest step_request(const Model& parsed) const;
  ParallelPlan parallel_plan() const;
};

}  // namespace foretoken
