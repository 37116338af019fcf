// A training estimate as one page: the answer, where the step's time and a device's memory go, the pipeline, the run.
#pragma once

#include <string>

#include "training/schedule/pipeline_schedule.h"
#include "training/training_estimate.h"

namespace foretoken {

struct TrainingPage {
  const TrainingQuestion& question;
  const TrainingEstimate& estimate;
  const PipelineTimeline& timeline;
  std::string command;  // that made it
  std::string more;     // the same as text for a terminal
};

std::string training_page_html(const TrainingPage& page);

// When each stage does what, one row for each; the first micro-batches where there are many.
std::string pipeline_svg(const PipelineTimeline& timeline);

}  // namespace foretoken
