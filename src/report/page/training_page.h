// A training estimate as one page: the answer, where the step's time and a device's memory go, the pipeline, the
// roofline, energy and cost, and how far to trust it.
#pragma once

#include <optional>
#include <string>

#include "compose/step_estimate.h"
#include "report/page/cost_parts.h"
#include "report/page/trust_panel.h"
#include "training/estimate/training_estimate.h"
#include "training/schedule/pipeline_schedule.h"

namespace foretoken {

struct TrainingPage {
  const TrainingQuestion& question;
  const TrainingEstimate& estimate;
  const PipelineTimeline& timeline;
  StepEstimate micro_batch;        // its kernels on one rank, as if one stage had all layers
  std::optional<RentedWork> rent;  // where it is known
  Trust trust;
  std::string command;  // that made it
  std::string more;     // the same as text for a terminal
};

std::string training_page_html(const TrainingPage& page);

// When each stage does what, one row for each; the first micro-batches where there are many.
std::string pipeline_svg(const PipelineTimeline& timeline);

}  // namespace foretoken
