// The flags that say what is trained, how it is laid out and by which software: Megatron-LM's names.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/cli/command.h"
#include "app/cli/library.h"
#include "app/cli/options.h"
#include "plan/plan_space.h"
#include "training/training_estimate.h"

namespace foretoken {

struct TrainingFlags {
  void declare(Options& options);

  // What the flags say, on top of a configuration file where one is given. InputError for what cannot be.
  TrainingQuestion question(const Library& library) const;
  // What of a plan was said, the rest left open; for searches. InputError for flags that no search understands.
  PlanChoices choices(const TrainingPlan& plan) const;
  void add_notes(Answer& answer) const;  // of question(): what a file said that was not used

 private:
  void declare_plan(Options& options);
  void declare_run(Options& options);
  std::optional<LongRun> long_run(const Library& library, const Cluster& cluster) const;
  TrainingPlan plan_from_flags(const TrainingPlan& start, int64_t layers, int64_t devices) const;
  bool given(const char* flag) const { return options_->was_given(flag); }

  const Options* options_ = nullptr;
  std::string model_, config_, cluster_, stack_, precision_ = "bf16", convention_ = "model-3x-causal-half";
  int64_t nodes_ = 0, devices_ = 0, sequence_length_ = 4096, lora_rank_ = 0;
  std::string lora_target_ = "all", routing_ = "balanced";
  double expert_capacity_ = 0;
  int64_t packed_length_ = 0;

  int64_t tensor_ = 1, pipeline_ = 1, context_ = 1, expert_ = 1, virtual_stages_ = 1, layers_per_virtual_stage_ = 0;
  int64_t first_layers_ = 0, last_layers_ = 0, micro_batch_ = 1, global_batch_ = 0, shard_ranks_ = 0;
  int64_t recompute_layers_ = 0;
  bool sequence_ = false, embedding_in_split_ = false, loss_in_split_ = false, distributed_optimizer_ = false;
  std::string schedule_, sharding_ = "none", recompute_ = "none", recompute_method_ = "uniform",
                         context_exchange_ = "ring";
  std::string optimizer_ = "adam";
  bool offload_optimizer_ = false;
  double optimizer_fraction_ = 1, activation_fraction_ = 0;

  std::string tokens_;
  double usd_per_hour_ = -1, watts_ = 0, mtbf_hours_ = 0, checkpoint_interval_ = 0, storage_gb_per_s_ = 2;
  int64_t spares_ = 0;
  std::string checkpoint_mode_ = "asynchronous";

  mutable std::vector<std::string> notes_;
};

}  // namespace foretoken
