// Whether the models of an RLHF loop fit in the memory of the GPUs that train them and of those that generate.
//
// All models of the loop lie on the GPUs that train, divided as the actor's plan divides it. Colocated, gradients and
// optimizer states leave for host memory while answers are generated (RlhfPlan::switched_bytes_per_device); weights
// stay, and the engine has what they leave.
#pragma once

#include <cstdint>
#include <optional>

#include "compose/serving_memory.h"
#include "training/estimate/training_estimate.h"
#include "training/scale/rlhf_loop.h"

namespace foretoken {

struct TrainerMemory {
  TrainingMemory actor;           // of the fullest stage, with sequences of the longest length
  Bytes others;                   // weights of models that are only asked, and all states of a critic
  Bytes weights;                  // of all models: what stays while answers are generated
  Bytes switched;                 // gradients and optimizer states, of a critic too
  std::optional<Bytes> capacity;  // of one device
  MemoryVerdict verdict = MemoryVerdict::fits;

  Bytes total() const { return actor.total() + others; }
  bool fits() const { return verdict != MemoryVerdict::too_large; }
};
// On so many of the devices, a multiple of trainer_unit().
TrainerMemory trainer_memory(const TrainingQuestion& question, const RlhfAlgorithm& algorithm, int64_t devices,
                             int64_t longest_sequence);

// The fewest devices that hold whole copies of the model, with all its experts.
int64_t trainer_unit(const TrainingPlan& plan);

// The fewest, up to `most`, that the models fit on; nothing where they fit on none.
std::optional<int64_t> least_trainers(const TrainingQuestion& question, const RlhfAlgorithm& algorithm, int64_t most,
                                      int64_t longest_sequence);

// A length at or above the given one that the plan's ranks can divide.
int64_t divisible_length(const TrainingPlan& plan, double tokens);

struct EngineRequest {
  std::string stack;  // software that generates; one of no engine divides memory as the usual engine does
  int64_t devices = 1;
  int64_t most_sequences = 256;
  int64_t longest_sequence = 0;
  Bytes taken;  // of each device by models that train there
};
ServingMemory engine_memory(const Model& model, const Device& device, const EngineRequest& request);

// Answers that an engine generates at once: those asked for, or as many as its KV cache has room for.
int64_t sequences_in_flight(const ServingMemory& memory, const RlhfPlan& plan, int64_t asked);

}  // namespace foretoken
