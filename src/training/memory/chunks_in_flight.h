// How many chunks a pipeline stage has run forward and not yet backward, at most.
#pragma once

#include <cstdint>
#include <string_view>

#include "training/schedule/pipeline_schedule.h"

namespace foretoken {

// Closed forms for equal stages. One chunk is one micro-batch through one of the stage's `virtual_stages` parts, held
// until its weight gradients are done.
//   gpipe         m v
//   1f1b          min(p - i, m)
//   interleaved   min(2 (p - i - 1) + (v - 1) g + 1, m v) in Megatron's order (arXiv 2104.04473, section 2.2), g = p or
//                 the micro-batches that pass one chunk in a row
//   zb-h1, zb-h2  min(p, m), min(2p - 1, m) on every stage: later stages delay weight gradients (arXiv 2401.10241)
//   zb-v          min(2p, 2m) half-size chunks
//   dualpipe      min(p + 1, m) over the chunks of both directions (arXiv 2412.19437, table 2)
// InputError for any other name.
int64_t chunks_in_flight(std::string_view schedule, const PipelineWork& work, int64_t stage);

}  // namespace foretoken
