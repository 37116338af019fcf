// What formulas say about a pipeline, without running it: for searches, and to hold the runs to account.
#pragma once

#include <optional>
#include <string_view>

#include "training/schedule/pipeline_schedule.h"

namespace foretoken {

// Idle seconds of the stage that waits longest, in one iteration whose chunks all take what the first one takes and
// whose messages take nothing. None where no formula is known for such times or so few micro-batches (kinds/ say which,
// with their sources).
std::optional<double> even_bubble_seconds(std::string_view schedule, const PipelineWork& work);

// The work must be one that the schedule can run. Never more than run_pipeline(...).seconds; equal to it in GPipe, and
// for even chunks without messages in 1F1B and interleaved. For each stage: what must come before its first task, all
// its work, and what must come after its last; the longest counts.
double pipeline_seconds_bound(std::string_view schedule, const PipelineWork& work);

}  // namespace foretoken
