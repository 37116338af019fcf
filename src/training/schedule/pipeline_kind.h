// What a kind of schedule says: the order of each stage's tasks. kinds/list.cpp names them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "training/schedule/pipeline_work.h"

namespace foretoken {

struct PipelineTask {
  PipelineTaskKind kind = PipelineTaskKind::forward;
  TaskPairing pairing = TaskPairing::alone;
  int32_t chunk = 0, micro_batch = 0;
  bool operator==(const PipelineTask&) const = default;
};

// One list for each stage. Every chunk and micro-batch stands in one list as a forward and either as one `backward` or
// as a backward_input with a backward_weight behind it.
using StageTasks = std::vector<std::vector<PipelineTask>>;

struct PipelineKind {
  std::string_view name, summary;
  std::string (*why_not)(const PipelineWork& work) = nullptr;  // empty = it can; counts are at least 1
  StageTasks (*tasks)(const PipelineWork& work) = nullptr;
  // Where the chunk of one copy of the model lies. Micro-batch i passes through copy i % model_copies.
  int64_t (*stage_of)(const PipelineWork& work, int64_t chunk, int64_t copy) = nullptr;
  int64_t model_copies = 1;
  // After how many micro-batches the order of the tasks may repeat.
  int64_t (*cycle)(const PipelineWork& work) = nullptr;
  // By formula: idle seconds of the stage that waits longest, when all chunks take `times` and messages nothing.
  std::optional<double> (*even_bubble)(const PipelineWork& work, const ChunkTimes& times) = nullptr;
  bool splits_backward = false;
  bool overlaps_pairs = false;     // some forwards run together with a backward
  bool stages_end_apart = false;   // the optimizer step of a stage waits for no other (arXiv 2401.10241, section 4)
  bool all_forward_first = false;  // no backward before the last forward: nothing repeats, but time is linear
};

std::span<const PipelineKind> pipeline_kinds();
const PipelineKind& pipeline_kind(std::string_view name);  // throws InputError

}  // namespace foretoken
