// The flags that make one kind of replica of a serving run, and the replicas that they make.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/cli/flags/diffusion_flags.h"
#include "app/cli/flags/engine_flags.h"
#include "app/cli/flags/ffn_flags.h"
#include "app/cli/flags/lora_flags.h"
#include "app/cli/flags/model_flags.h"
#include "app/cli/flags/placement_flags.h"
#include "app/cli/flags/power_flags.h"
#include "app/cli/flags/scheduler_flags.h"
#include "app/cli/flags/speculation_flags.h"
#include "library/library.h"
#include "report/answer_json.h"
#include "serving/engine/engine_builder.h"
#include "serving/engine/engine_spec.h"

namespace foretoken {

// The typical step of each kind, by operator. InputError, which names the flag, where there are no operators.
std::vector<TypicalStep> typical_steps_of(const ReplicaGroup& group, const StepMix& mix, const std::string& flag);
// All of its steps, by operator; as above.
OperatorAccount operator_account_of(const ReplicaGroup& group, const StepMix& mix, const std::string& flag);

struct ReplicaFlags {
  ModelFlags model;
  PlacementFlags placement;
  MemoryFlags engine;
  SchedulerFlags scheduler;
  SpeculationFlags speculation;
  FfnFlags ffn;
  PowerFlags power;
  LoraFlags lora;
  DiffusionFlags diffusion;
  std::string stack, tier = "best", op_tables, vidur_tables;
  double host_factor = 1;
  bool sustained = false;
  bool metered = false;  // their energy is asked for
  int64_t receive_interval = 1, stream_interval = 1;
  bool two_batch_overlap = false;
  int64_t count = 1;
  std::string router = "engine";

  void declare_model(Options& options, bool required = true);
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
  EngineSpec spec(const Library& library, bool offline) const;
  // `texts`: as in LoadSpec.
  ReplicaGroup build(const Library& library, bool offline, PromptTexts texts = PromptTexts::natural) const;
};

}  // namespace foretoken
