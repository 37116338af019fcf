#include <fmt/format.h>

#include "training/schedule/kinds/list.h"

namespace foretoken {

std::string why_not_virtual_stages(const PipelineWork& work, int64_t needed) {
  if (work.virtual_stages == needed) return {};
  return fmt::format("this schedule needs {} virtual stage{} on each rank, not {}", needed, needed == 1 ? "" : "s",
                     work.virtual_stages);
}

int64_t round_robin_stage(const PipelineWork& work, int64_t chunk, int64_t /*copy*/) {
  return chunk % work.stages;
}

int64_t folded_stage(const PipelineWork& work, int64_t chunk, int64_t /*copy*/) {
  return chunk < work.stages ? chunk : 2 * work.stages - 1 - chunk;
}

int64_t every_micro_batch(const PipelineWork& /*work*/) {
  return 1;
}

std::optional<double> ramp_bubble(const PipelineWork& work, const ChunkTimes& times) {
  return static_cast<double>(work.stages - 1) * times.sum();
}

}  // namespace foretoken
