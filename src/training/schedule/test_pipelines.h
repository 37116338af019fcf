// Pipelines that tests of this folder share.
#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/random.h"
#include "training/schedule/pipeline_schedule.h"

namespace foretoken {

// As asked for or, where the schedule cannot run that, with fewer virtual stages or some more micro-batches. Chunks
// take `times`. micro_batches = 0: the schedule cannot run so many stages at all.
inline PipelineWork runnable_pipeline(std::string_view schedule, int64_t stages, int64_t virtual_stages,
                                      int64_t micro_batches, const ChunkTimes& times = {1, 1, 1}) {
  PipelineWork work{.stages = stages};
  for (work.virtual_stages = virtual_stages; work.virtual_stages >= 1; --work.virtual_stages) {
    for (work.micro_batches = micro_batches; work.micro_batches <= micro_batches + 3 * stages; ++work.micro_batches) {
      if (!why_not(schedule, work).empty()) continue;
      work.chunks.assign(static_cast<size_t>(stages * work.virtual_stages), times);
      return work;
    }
  }
  return {.micro_batches = 0};
}

// Up to 8 stages whose chunks all take different times. With `unevenness` near 0, nearly the same ones.
inline PipelineWork random_pipeline(std::string_view schedule, RandomStream& stream, int64_t most_micro_batches,
                                    double unevenness = 1) {
  PipelineWork work;
  do {
    const int64_t stages = 1 + static_cast<int64_t>(stream.below(8));
    const int64_t virtual_stages = 1 + static_cast<int64_t>(stream.below(4));
    const int64_t micro_batches = 1 + static_cast<int64_t>(stream.below(static_cast<uint64_t>(most_micro_batches)));
    work = runnable_pipeline(schedule, stages, virtual_stages, micro_batches);
  } while (work.micro_batches == 0);
  const ChunkTimes common{stream.uniform(0.5, 1.5), stream.uniform(0.5, 2), stream.uniform(0.2, 1.5)};
  const auto varied = [&](double seconds) { return seconds * (1 + unevenness * stream.uniform(-0.5, 1)); };
  for (ChunkTimes& times : work.chunks) {
    times = {varied(common.forward), varied(common.backward_input), varied(common.backward_weight)};
  }
  if (stream.below(2) == 0) work.send_forward = stream.uniform(0, 0.5);
  if (stream.below(2) == 0) work.send_backward = stream.uniform(0, 0.5);
  if (stream.below(2) == 0) work.overlapped_pair = stream.uniform(0.6, 1);
  return work;
}

inline std::string described(std::string_view schedule, const PipelineWork& work) {
  return fmt::format("{}: {} stages, {} virtual, {} micro-batches", schedule, work.stages, work.virtual_stages,
                     work.micro_batches);
}

}  // namespace foretoken
