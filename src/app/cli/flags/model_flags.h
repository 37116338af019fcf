// The flags that say which model runs on which device, and how it is cut; vLLM's names where it has them.
#pragma once

#include <string>

#include "app/cli/grammar/options.h"
#include "compose/model_spec.h"
#include "library/library.h"
#include "model/step.h"

namespace foretoken {

struct ModelFlags {
  std::string model;
  std::string device;
  std::string quantization;  // empty = as the model's config says
  std::string kv_cache_dtype = "auto";
  bool enable_expert_parallel = false;
  std::string expert_popularity;  // empty = by chance
  int64_t redundant_experts = 0;
  std::string all2all_backend = "allgather_reducescatter";
  ParallelPlan plan;

  void declare_model(Options& options, bool required = true);
  void declare_parallelism(Options& options);

  ModelSpec model_spec() const;
  // As engines run it on the device: InputError for a format that the device does not have.
  Model read_model(const Library& library) const;
  // InputError for flags of experts that a dense model has no use for.
  void check_experts(const Model& parsed) const;
  DType kv_dtype(const Model& parsed) const;
  ParallelPlan parallel_plan() const;
};

}  // namespace foretoken
