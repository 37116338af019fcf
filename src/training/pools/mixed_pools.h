// One training job on GPUs of several kinds, as Sailor (Strati et al., SOSP 2025) plans them: each kind has work in
// proportion to its speed, and everybody waits for the slowest.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/estimate.h"
#include "training/estimate/training_estimate.h"

namespace foretoken {

// What differs between kinds of GPUs.
//   data      replicas: those of a faster kind take more micro-batches of a step
//   pipeline  stages: those of a faster kind hold more layers
enum class PoolAxis : uint8_t { data, pipeline };
inline constexpr std::string_view pool_axis_names[] = {"data", "pipeline"};

// GPUs of one kind.
struct TrainingPool {
  // The whole job as if all of its devices were of this kind; plans are the same in all pools.
  TrainingQuestion question;
  std::unique_ptr<MachineModels> machine;
  int64_t devices = 0;  // of this kind
};

struct PoolWork {
  int64_t replicas = 0;                         // that have ranks in this pool
  int64_t micro_batches = 0;                    // of each of them, at most
  int64_t first_stage = 0;                      //
  std::vector<int64_t> layers;                  // of each stage in this pool
  Estimate seconds;                             // of a step, if nobody had to be waited for
  TrainingMemory memory;                        // of the fullest device
  std::optional<Bytes> capacity;                //
  MemoryVerdict verdict = MemoryVerdict::fits;  // also where the capacity is not known
};

struct MixedEstimate {
  PoolAxis axis = PoolAxis::data;
  Estimate seconds;
  double even_seconds = 0;  // if every GPU had the same work
  double tokens_per_second = 0;
  size_t slowest = 0;           // pool
  std::vector<PoolWork> pools;  // as they were given; the first has the first stages
  bool fits = true;
};

// Every rank is priced on its own GPU with links as fast as those of its pool, for all ranks; reductions over replicas
// take what they take in the slowest pool. InputError where pools have no whole replicas (data) or stages (pipeline).
MixedEstimate estimate_mixed(std::span<const TrainingPool> pools, PoolAxis axis);

}  // namespace foretoken
