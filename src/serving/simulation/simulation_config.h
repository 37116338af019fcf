// What a serving run is made of, and what it counts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compose/serving_engine.h"
#include "compose/stack.h"
#include "serving/colocation/colocation.h"
#include "serving/fleet/fleet.h"
#include "serving/lora/adapter_cache.h"
#include "serving/requests/request.h"
#include "serving/requests/run_parts.h"
#include "serving/scheduling/scheduler.h"
#include "serving/simulation/disaggregation.h"
#include "serving/stages/sample_groups.h"
#include "serving/stages/stage.h"
#include "serving/steps/step_bound.h"
#include "serving/steps/step_times.h"
#include "serving/tiers/kv_tier.h"
#include "serving/tiers/kv_tier_usage.h"

namespace foretoken {

struct ReplicaConfig {
  std::string scheduler = "vllm";
  SchedulerOptions options;
  StepTimes* times = nullptr;  // not owned; replicas may share one
  FirstTokenDoubt first_token_doubt = {};
  FrontCosts front = {};         // between clients and this engine; nothing: they call the engine itself
  int64_t receive_interval = 1;  // decode steps from one reading of new requests to the next (SGLang)
  int64_t stream_interval = 1;   // tokens in a piece of an answer, but for the first and the last
  AdapterLoading adapters = {};  // slots for LoRA adapters
  bool ffn_apart = false;        // its feed-forward layers run on devices of their own
  bool keeps_cache = false;      // a prompt's blocks stay when it has its last token: until they have been moved
  bool only_decodes = false;     // prompts are computed elsewhere
};

struct SimulationConfig {
  std::vector<ReplicaConfig> replicas;
  std::string router = "round_robin";
  uint64_t seed = 0;  // of routers that draw
  StepBound bound = StepBound::value;
  // Separate workers for prompts; `router` chooses among those.
  std::optional<Disaggregation> disaggregation = {};
  // Memories below the GPUs' caches, of every replica; with separate workers of those for prompts.
  std::optional<KvTierSettings> kv_tiers = {};
  // Replicas come and go; `router` chooses within a region.
  std::optional<FleetConfig> fleet = {};
  // The replicas are engines of different models that share one device; no router.
  std::optional<Colocation> colocation = {};
  std::vector<StageConfig> stages = {};  // that requests pass before they are sent to a replica, in this order
  SampleSettings samples = {};
  // Equal decode steps are advanced at once. Without it each is decided alone: slower, the same answers.
  bool repeat_decodes = true;
  // Observers are told the gaps between tokens: many, so that whoever asks for none is faster without.
  bool token_gaps = true;
};

// What the config asks for.
RunParts parts_of(const SimulationConfig& config);

struct SimulationTotals {
  int64_t completed = 0;
  int64_t rejected = 0;
  int64_t preemptions = 0;
  int64_t steps = 0;
  int64_t decisions = 0;  // scheduling decisions: equal decode steps in a row count once
  Picoseconds end = 0;    // of the last request
  KvTierUsage kv_tiers;
  FleetTotals fleet = {};                  // where replicas come and go
  std::vector<DeviceUse> device_use = {};  // by replica, where they share a device
  std::vector<StageUse> stages = {};

  void add(const SimulationTotals& part);  // the counts, and the later end
};

}  // namespace foretoken
