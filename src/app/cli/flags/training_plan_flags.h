// The flags that lay a training job out on devices: Megatron-LM's names.
#pragma once

#include <optional>
#include <string>

#include "app/cli/grammar/options.h"
#include "model/model.h"
#include "plan/plan_space.h"
#include "training/import/import_config.h"

namespace foretoken {

// Of flags that count tokens, sequences, layers or devices.
inline constexpr Range<int64_t> at_least_one{.least = 1, .most = 1'000'000'000};
inline constexpr Range<int64_t> none_or_more{.least = 0, .most = 1'000'000'000};

struct TrainingPlanFlags {
  void declare(Options& options);

  // What the flags say, on top of a configuration file (nullptr = none) and of what the stack usually shards.
  // InputError for flags that contradict each other or change nothing; whether the plan can run is not looked at.
  TrainingPlan plan(const ImportedTraining* imported, const Model& model, int64_t sequence_length, int64_t devices,
                    Sharding usual_sharding) const;
  // By a flag or by the file.
  bool says_sharding(const ImportedTraining* imported) const;

  // For searches: what was said as above, the rest as it comes, and which of it is fixed. InputError for flags that no
  // search understands.
  struct OpenPlan {
    TrainingPlan start;
    PlanChoices choices;
  };
  OpenPlan open_plan(const ImportedTraining* imported, int64_t devices) const;

 private:
  bool given(const char* flag) const { return options_->was_given(flag); }
  TrainingPlan said_plan(const ImportedTraining* imported, int64_t devices, Sharding usual_sharding) const;
  Sharding said_sharding(Sharding start) const;
  int64_t said_recompute_layers(const TrainingPlan& plan) const;
  void take_recompute_modules(TrainingPlan& plan) const;
  void take_layout(TrainingPlan& plan) const;
  int64_t said_virtual_stages(const TrainingPlan& plan, const ImportedTraining* imported, int64_t layers) const;
  void refuse_without_effect(const TrainingPlan& plan) const;
  void check_fixed_sizes(const TrainingPlan& plan) const;

  const Options* options_ = nullptr;
  int64_t micro_batch_ = 1, global_batch_ = 0, accumulation_ = 0;
  int64_t tensor_ = 1, pipeline_ = 1, context_ = 1, expert_ = 1, expert_tensor_ = 0, data_ = 0;
  int64_t virtual_stages_ = 1, layers_per_virtual_stage_ = 0, micro_batch_group_ = 0;
  int64_t first_layers_ = 0, last_layers_ = 0, shard_ranks_ = 0, recompute_layers_ = 0;
  bool sequence_ = false, embedding_in_split_ = false, loss_in_split_ = false;
  bool distributed_optimizer_ = false, megatron_fsdp_ = false;
  bool overlap_gradients_ = false, overlap_parameters_ = false, overlap_tensor_ = false, overlap_experts_ = false;
  std::string schedule_, sharding_ = "none", sharding_strategy_ = "optim_grads_params";
  std::string layout_;
  std::vector<std::string> recompute_modules_;
  std::string recompute_ = "none", recompute_method_ = "uniform", context_exchange_ = "ring", dispatcher_ = "usual";
};

}  // namespace foretoken
