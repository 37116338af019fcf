#include "report/trace/training_trace.h"

#include <fmt/format.h>

#include "report/trace/trace_events.h"

namespace foretoken {
namespace {

// Names that chrome://tracing knows: green, blue and orange.
std::string_view task_colour(PipelineTaskKind kind) {
  switch (kind) {
    case PipelineTaskKind::forward:
      return "thread_state_running";
    case PipelineTaskKind::backward:
    case PipelineTaskKind::backward_input:
      return "rail_response";
    case PipelineTaskKind::backward_weight:
      break;
  }
  return "rail_animation";
}

}  // namespace

Json pipeline_trace(std::string_view schedule, const PipelineTimeline& timeline) {
  constexpr int64_t process = 0;
  Json events = Json::array();
  events.push(process_name_event(process, fmt::format("pipeline ({})", schedule)));
  int64_t named_stages = 0;
  for (const PipelineEvent& event : timeline.events) {
    for (; named_stages <= event.stage; ++named_stages) {
      events.push(track_name_event(process, named_stages, fmt::format("stage {}", named_stages)));
    }
    const std::string_view kind = pipeline_task_name(event.kind);
    const std::string name = fmt::format("{} {}", kind, event.micro_batch);
    events.push(complete_event({.category = kind,
                                .name = name,
                                .process = process,
                                .track = event.stage,
                                .begin_us = event.start * 1e6,
                                .duration_us = event.seconds * 1e6,
                                .colour = task_colour(event.kind)},
                               Json::object({{"micro_batch", event.micro_batch}, {"chunk", event.chunk}})));
  }
  return trace_document(std::move(events));
}

Json timeline_json(const PipelineTimeline& timeline) {
  Json tasks = Json::array();
  for (const PipelineEvent& event : timeline.events) {
    tasks.push(Json::object({{"stage", event.stage},
                             {"kind", pipeline_task_name(event.kind)},
                             {"chunk", event.chunk},
                             {"micro_batch", event.micro_batch},
                             {"start", event.start},
                             {"seconds", event.seconds}}));
  }
  return Json::object({{"micro_batches", timeline.micro_batches}, {"tasks", std::move(tasks)}});
}

}  // namespace foretoken
