// A pipeline's timeline for the terminal: one line for each stage.
#pragma once

#include <cstddef>
#include <string>

#include "report/parts/table.h"
#include "training/schedule/pipeline_schedule.h"

namespace foretoken {

// Every column is a slice of time and shows what the stage does for most of it: F forward, B backward or its input
// gradients, W weight gradients, . nothing. A line of time and one that explains the letters follow.
//   stage 0 |FFFF....BBWF.BBWF|
std::string pipeline_chart(const PipelineTimeline& timeline, size_t width = page_width());

}  // namespace foretoken
