// One function per kind; list.cpp names them.
#pragma once

#include "training/schedule/pipeline_kind.h"

namespace foretoken {

PipelineKind gpipe_schedule();
PipelineKind one_forward_one_backward_schedule();
PipelineKind interleaved_schedule();
PipelineKind zero_bubble_h1_schedule();
PipelineKind zero_bubble_h2_schedule();
PipelineKind zero_bubble_v_schedule();
PipelineKind dualpipe_schedule();

// What several kinds share (shared.cpp).
std::string why_not_virtual_stages(const PipelineWork& work, int64_t needed);  // empty = it has as many as needed
int64_t round_robin_stage(const PipelineWork& work, int64_t chunk, int64_t copy);
int64_t folded_stage(const PipelineWork& work, int64_t chunk, int64_t copy);
int64_t every_micro_batch(const PipelineWork& work);  // the order repeats with each
// (p - 1)(F + B) of one chunk: the first comes in after p - 1 forwards, the last goes out after p - 1 backwards.
std::optional<double> ramp_bubble(const PipelineWork& work, const ChunkTimes& times);
inline PipelineTask pipeline_task(PipelineTaskKind kind, int64_t chunk, int64_t micro_batch) {
  return {.kind = kind, .chunk = static_cast<int32_t>(chunk), .micro_batch = static_cast<int32_t>(micro_batch)};
}

}  // namespace foretoken
