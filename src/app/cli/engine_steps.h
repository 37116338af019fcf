// How long single steps of an engine take, for programs that schedule by themselves: under Python's StepPredictor and
// the C API.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/json.h"
#include "library/library.h"
#include "serving/engine/engine_builder.h"

namespace foretoken {

// Of one step: more are no batch of an engine.
inline constexpr int64_t most_step_sequences = 1'000'000, most_step_tokens = 100'000'000;

// Not thread-safe: one for each thread.
class EngineSteps {
 public:
  // `fields`: what `foretoken endpoint` takes of model, device, engine and deployment, by field name; `source` stands
  // for them in errors. EngineDoesNotFit where the engine would not start.
  EngineSteps(Json fields, const std::string& source, const Library& library);

  // InputError for a batch that no engine could have.
  Estimate seconds(const StepBatch& batch);

  const ReplicaGroup& engine() const { return group_; }

 private:
  ReplicaGroup group_;
};

}  // namespace foretoken
