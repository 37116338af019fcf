// What formulas say about a pipeline, without running it: for searches, and to hold the runs to account.
#pragma once

#include <optional>
#include <string_view>

#include "training/schedule/pipeline_schedule.h"

namespace foretoken {

// Idle seconds of each stage in one iteration when every chunk takes what the first one takes, and messages nothing.
// None where no formula is known for such times or so few micro-batches (kinds/ say which, with their sources).
std::optional<double> even_bubble_seconds(std::string_view schedule, const PipelineWork& work);

// The work must be one that the schedule can run. Never more than run_pipeline(...).seconds, and equal to it for even
// chunks without messages in GPipe, 1F1B and interleaved. For each stage: what must come before its first task, all its
// work, and what must come after its last; the longest counts.
double pipeline_seconds_bound(std::string_view schedule, const PipelineWork& work);

}  // namespace foretoken
