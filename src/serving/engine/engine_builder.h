// From an engine's spec and the facts to replicas that can be simulated: the only place where engines are put together.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compose/serving_memory.h"
#include "compose/stack.h"
#include "compose/step_sources.h"
#include "hardware/node.h"
#include "library/deployment.h"
#include "library/device_models.h"
#include "serving/engine/draft_engine.h"
#include "serving/engine/engine_spec.h"
#include "serving/results/typical_steps.h"
#include "serving/simulation/simulation_config.h"
#include "serving/stages/encoder_passes.h"
#include "serving/steps/sustained_grid.h"

namespace foretoken {

class Library;
struct EngineSetup;

// Where the numbers come from. Called from several threads.
struct ServingFacts {
  DeviceModelMaker device_models;
  std::function<Stack(std::string_view name)> stack;
  // What devices sit in where they are placed so.
  std::function<std::optional<Node>(const Device&, const PlacementSpec&)> node = {};
  std::shared_ptr<const CalibratedDeployment> deployment = {};  // that was calibrated; null: none
  double host_factor = 1;                                       // times all host times: 2 = hosts half as fast
};
// Of the library, which outlives them.
ServingFacts serving_facts(const Library& library, Tier tier = Tier::best);

// Equal replicas, with all that their steps are made of.
struct ReplicaGroup {
  int64_t count = 1;
  int64_t data_parallel_ranks = 1;  // of one server; `count` has them all
  Model model;
  ParallelPlan plan;             // of one replica
  PlacementSpec placement = {};  // as it was asked for
  DeviceModels models;
  ServingMemory memory;
  Stack stack;  // as this engine captures graphs
  DType kv_dtype = DType::bf16;
  bool two_batch_overlap = false;
  Logits logits = Logits::last;                   // what the head of its steps runs on
  std::optional<FfnPool> ffn;                     // whose devices have the feed-forward layers
  bool has_own_kernels = true;                    // steps are not those of somebody's tables
  bool has_operators = true;                      // steps of our own kernels on one kind of device, without drafts
  std::shared_ptr<SustainedGrid> sustained_grid;  // null = boards are not metered
  std::shared_ptr<StepTimes> times;               // without adapters and drafts; shared with engines of other limits
  std::optional<LoraEngine> lora;
  std::unique_ptr<StepTimes> lora_times;  // with the adapters' kernels
  std::shared_ptr<DraftEngine> drafter;
  std::shared_ptr<StepTimes> drafting_times;  // with the drafter's passes
  std::unique_ptr<PictureEncoder> pictures;   // where the engine encodes them
  std::unique_ptr<StepTimes> picture_times;   // with its passes
  ReplicaConfig config;                       // uses these

  int64_t cache_devices() const;         // of one replica: those that hold its KV cache
  ComposedStepsConfig composed() const;  // how its steps are, without drafts and adapters
  // What each device sends for a token of a decode step, by link; empty where nothing is sent or the network is not
  // known.
  std::vector<LinkTraffic> links_per_token() const;
  // Of a decode step, of a prompt where the model decodes nothing; nothing where steps are read from a table.
  std::optional<StepSources> typical_sources() const;
};

// Keeps step times, so that engines which differ in limits alone share them; engines stay valid without it. Not
// thread-safe: one for each thread.
class EngineBuilder {
 public:
  explicit EngineBuilder(ServingFacts facts);
  ~EngineBuilder();

  // EngineDoesNotFit where it would not start; InputError for what an engine would refuse.
  ReplicaGroup build(const EngineSpec& spec);
  const ServingFacts& facts() const { return facts_; }

 private:
  struct Family;
  std::shared_ptr<Family> family_of(const std::string& key);  // empty = of no other engine
  // `asked` is the plan before ranks shared their experts: calibrations know it so.
  Stack stack_of(const EngineSpec& spec, const std::string& family, const ParallelPlan& asked) const;
  // Its sizes, memory, graphs and scheduler, as it sets them when it starts.
  EngineSetup started(const EngineSpec& spec, const ParallelPlan& plan, const Device& device,
                      const ParallelPlan& asked) const;
  DeviceModels models_of(const Device& device, const ParallelPlan& plan, const PlacementSpec& placement);

  ServingFacts facts_;
  std::map<std::string, DeviceModels> models_;  // by device and machine, and whether of several ranks
  std::map<std::string, std::shared_ptr<const RankNetwork>> networks_;  // by these and the plan
  std::map<std::string, std::shared_ptr<Family>> families_;             // by what their steps depend on
};

}  // namespace foretoken
