// From a layout to engines that can be simulated; layouts that differ in limits and numbers share their step times.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "plan/serving/serving_question.h"
#include "serving/energy/energy_account.h"
#include "serving/engine/engine_builder.h"

namespace foretoken {

struct ReadyEngine {
  ReplicaGroup group;
  double tokens_per_decode = 1;  // that come out of a decode's step, in the mean
  MeteredBoards boards = {};     // of one engine; where it is known what they draw

  SustainedGrid* draw() const { return group.sustained_grid.get(); }  // null where that is not known
};

enum class StartFailure : uint8_t {
  no_room,         // for its weights and a cache of one sequence
  runs_out,        // of memory while it starts, although its cache would do (ServingMemory::runs_out_while_starting)
  refuses_limits,  // they do not go together, or a drafter finds no room
};

// Those of one layout.
struct LayoutEngines {
  const ReadyEngine* pool = nullptr;    // null where one of its engines does not start
  const ReadyEngine* decode = nullptr;  // null where one pool does all
  std::optional<StartFailure> failure = {};

  bool start() const { return pool != nullptr; }
};

// Keeps what it has made. Not thread-safe: one for each thread. `question` outlives it.
class EngineShelf {
 public:
  EngineShelf(const ServingQuestion& question, const ServingFacts& facts, const Traffic& traffic);

  // Valid until the next call.
  LayoutEngines engines(const ServingLayout& layout);

 private:
  struct Attempt {
    std::optional<ReadyEngine> engine;
    std::optional<StartFailure> failure = {};  // where there is no engine
  };
  static std::string key_of(const EnginePool& pool);
  const Attempt& engine(const EnginePool& pool);
  Attempt attempted(const EnginePool& pool);
  EngineSpec spec_of(const EnginePool& pool) const;
  ReadyEngine made(const EnginePool& pool);

  const ServingQuestion* question_;
  int64_t max_model_len_;
  EngineBuilder builder_;
  std::map<std::string, Attempt> engines_;  // by EngineChoice::key and limits
};

// Tokens of the longest sequence that engines are set up for: what the question says, else the longest of the traffic
// rounded up.
int64_t planned_model_len(const ServingQuestion& question, const Traffic& traffic);

}  // namespace foretoken
