#include "report/trace/chrome_trace.h"

#include <fmt/format.h>

#include "model/shape_fields.h"
#include "report/trace/trace_events.h"

namespace foretoken {
namespace {

constexpr int host_track = 1, device_track = 2;

Json arguments(const TimedLaunch& timed, const Operator& call) {
  Json result = Json::object({{"operator", call.name}, {"family", family_name(timed.launch.shape)}});
  if (!timed.launch.variant.empty()) result.set("variant", timed.launch.variant);
  for (const auto& [field, value] : shape_fields(timed.launch.shape)) result.set(std::string(field), value);
  const auto count = static_cast<double>(timed.launch.count);
  result.set("low_us", timed.seconds.low / count * 1e6).set("high_us", timed.seconds.high / count * 1e6);
  return result;
}

}  // namespace

void add_step_events(Json& events, const StepEstimate& step, const Stack& stack, double host_factor,
                     int64_t first_process, const std::string& label, double begin_us) {
  double begin = begin_us * 1e-6;
  for (size_t index = 0; index < step.stages.size(); ++index) {
    const StageEstimate& stage = step.stages[index];
    const auto process = first_process + static_cast<int64_t>(index);
    events.push(process_name_event(process, fmt::format("{}stage {} ({})", label, index, step.stack)));
    events.push(track_name_event(process, host_track, "host"));
    events.push(track_name_event(process, device_track, "device"));
    for (const TimelineEvent& event : step_timeline(stage, stack, step.dispatch, host_factor)) {
      const TimedLaunch& timed = stage.launches[event.launch];
      const Operator& call = stage.calls[timed.launch.call];
      const char* category = event.on_host ? "launch" : timed.kernel ? "kernel" : "collective";
      events.push(complete_event({.category = category,
                                  .name = timed.launch.name,
                                  .process = process,
                                  .track = event.on_host ? host_track : device_track,
                                  .begin_us = (begin + event.start) * 1e6,
                                  .duration_us = event.seconds * 1e6},
                                 event.on_host ? Json::object({{"operator", call.name}}) : arguments(timed, call)));
    }
    begin += stage.seconds.value;
  }
}

Json chrome_trace(const StepEstimate& step, const Stack& stack, double host_factor) {
  Json events = Json::array();
  add_step_events(events, step, stack, host_factor, 0, "", 0);
  return trace_document(std::move(events));
}

}  // namespace foretoken
