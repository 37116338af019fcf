// From a layout to engines that can be simulated; layouts that differ in limits and numbers share their step times.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "plan/serving/serving_question.h"
#include "serving/energy/energy_account.h"
#include "serving/engine_setup.h"
#include "serving/speculation/draft_engine.h"

namespace foretoken {

struct ReadyEngine {
  ServingMemory memory;
  ReplicaConfig config;
  StepTimes* plain_times = nullptr;  // without drafts
  double tokens_per_decode = 1;      // that come out of a decode's step, in the mean
  Stack stack;                       // as this engine captures graphs
  SustainedGrid* draw = nullptr;     // null where it is not known what the boards draw
  MeteredBoards boards = {};         // of one engine; where that is known
};

// Those of one layout.
struct LayoutEngines {
  const ReadyEngine* pool = nullptr;    // null where one of its engines does not start
  const ReadyEngine* decode = nullptr;  // null where one pool does all
  bool clash = false;  // does not start for other reasons than its weights and cache: limits, or a drafter

  bool start() const { return pool != nullptr; }
};

// Keeps what it has made. Not thread-safe: one for each thread. `question` and `facts` outlive it.
class EngineShelf {
 public:
  EngineShelf(const ServingQuestion& question, const ServingFacts& facts, const Traffic& traffic);
  ~EngineShelf();

  // Valid until the next call.
  LayoutEngines engines(const ServingLayout& layout);

 private:
  struct Family;
  struct Attempt {
    std::optional<ReadyEngine> engine;
    bool clash = false;
  };
  Family& family(const EngineChoice& choice);
  const Attempt& engine(const EnginePool& pool);
  std::optional<ReadyEngine> made(Family& family, const EnginePool& pool) const;
  const DeviceModels& models(const std::string& device, const ParallelPlan& plan);

  const ServingQuestion* question_;
  const ServingFacts* facts_;
  int64_t max_model_len_;
  std::map<std::pair<std::string, bool>, DeviceModels> models_;  // by device, and whether of several ranks
  std::map<std::string, std::unique_ptr<Family>> families_;      // by EngineChoice::key
};

// Tokens of the longest sequence that engines are set up for: what the question says, else the longest of the traffic
// rounded up.
int64_t planned_model_len(const ServingQuestion& question, const Traffic& traffic);

}  // namespace foretoken
