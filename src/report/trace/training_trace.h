// A pipeline's timeline as JSON, and as a Chrome trace, which Perfetto and chrome://tracing open: one track for each
// stage.
#pragma once

#include <string_view>

#include "base/json.h"
#include "training/schedule/pipeline_schedule.h"

namespace foretoken {

// Events carry their kind as category and colour, and chunk and micro-batch as arguments. Times are microseconds.
Json pipeline_trace(std::string_view schedule, const PipelineTimeline& timeline);

// What --timeline draws, for programs: every task with its stage, in seconds.
Json timeline_json(const PipelineTimeline& timeline);

}  // namespace foretoken
