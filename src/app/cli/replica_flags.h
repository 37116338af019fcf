// The flags that make one kind of replica of a serving run, and the replicas that they make.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/cli/diffusion_flags.h"
#include "app/cli/engine_flags.h"
#include "app/cli/ffn_flags.h"
#include "app/cli/lora_flags.h"
#include "app/cli/model_flags.h"
#include "app/cli/power_flags.h"
#include "app/cli/scheduler_flags.h"
#include "app/cli/speculation_flags.h"
#include "app/library.h"
#include "compose/serving_memory.h"
#include "report/serving_report.h"
#include "serving/results/typical_steps.h"
#include "serving/simulation.h"
#include "serving/stages/encoder_passes.h"
#include "serving/steps/sustained_grid.h"

namespace foretoken {

// Equal replicas, with all that their steps are made of.
struct ReplicaGroup {
  int64_t count = 1;
  int64_t data_parallel_ranks = 1;  // of one server; `count` has them all
  Model model;
  ParallelPlan plan;  // of one replica
  DeviceModels models;
  ServingMemory memory;
  Stack stack;
  DType kv_dtype = DType::bf16;
  bool two_batch_overlap = false;
  Logits logits = Logits::last;                   // what the head of its steps runs on
  std::optional<FfnPool> ffn;                     // whose devices have the feed-forward layers
  bool has_own_kernels = true;                    // steps are not those of somebody's tables
  bool has_operators = true;                      // steps of our own kernels on one kind of device, without drafts
  std::shared_ptr<SustainedGrid> sustained_grid;  // null = boards are cool, and not metered
  std::unique_ptr<StepTimes> times;
  std::optional<LoraEngine> lora;
  std::unique_ptr<StepTimes> lora_times;  // with the adapters' kernels
  std::optional<DraftEngine> drafter;
  std::unique_ptr<StepTimes> drafting_times;  // with the drafter's passes
  std::unique_ptr<PictureEncoder> pictures;   // where the engine encodes them
  std::unique_ptr<StepTimes> picture_times;   // with its passes
  ReplicaConfig config;                       // uses these

  int64_t cache_devices() const;  // of one replica: those that hold its KV cache
  ReplicaSummary summary() const;
  ComposedStepsConfig composed() const;  // how its steps are, without drafts and adapters
  // The typical step of each kind, by operator. InputError, which names the flag, where there are no operators.
  std::vector<TypicalStep> typical_steps(const StepMix& mix, const std::string& flag) const;
};

struct ReplicaFlags {
  ModelFlags model;
  MemoryFlags engine;
  SchedulerFlags scheduler;
  SpeculationFlags speculation;
  FfnFlags ffn;
  PowerFlags power;
  LoraFlags lora;
  DiffusionFlags diffusion;
  std::string stack, tier = "best", op_tables, vidur_tables;
  bool sustained = false;
  bool metered = false;  // their energy is asked for
  int64_t receive_interval = 1;
  bool two_batch_overlap = false;
  int64_t count = 1;
  std::string router = "engine";

  void declare_model(Options& options);
  void declare_engine(Options& options);
  // How many there are behind which router. `declare_more` declares flags between the two.
  void declare_replicas(Options& options, Range<int64_t> allowed, const std::function<void()>& declare_more = {});
  // The router of a run of `ranks` data-parallel ranks a server: the one asked for, or the engine's.
  std::string router_name(int64_t ranks) const;
  // The same with some flags changed: "device=a100_sxm,tp=2,count=4". `flag` is the one that says so. `declare_more`
  // declares further flags, in place of count, of engines that may have another model.
  ReplicaFlags with(const std::string& flag, const std::string& settings,
                    const std::function<void(Options&)>& declare_more = {}) const;
  // `offline`: requests do not come through a server (engine_setup.h).
  ReplicaGroup build(const Library& library, bool offline) const;
};

}  // namespace foretoken
