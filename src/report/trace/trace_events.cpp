#include "report/trace/trace_events.h"

#include <utility>

namespace foretoken {
namespace {

Json named(std::string_view what, int64_t process, int64_t track, std::string_view name) {
  return Json::object(
      {{"ph", "M"}, {"name", what}, {"pid", process}, {"tid", track}, {"args", Json::object({{"name", name}})}});
}

}  // namespace

Json process_name_event(int64_t process, std::string_view name) {
  return named("process_name", process, 0, name);
}

Json track_name_event(int64_t process, int64_t track, std::string_view name) {
  return named("thread_name", process, track, name);
}

Json complete_event(const TraceSpan& span, Json arguments) {
  Json event = Json::object({{"ph", "X"},
                             {"cat", span.category},
                             {"name", span.name},
                             {"pid", span.process},
                             {"tid", span.track},
                             {"ts", span.begin_us},
                             {"dur", span.duration_us},
                             {"args", std::move(arguments)}});
  if (!span.colour.empty()) event.set("cname", span.colour);
  return event;
}

Json counter_event(int64_t process, std::string_view name, double time_us, Json values) {
  return Json::object({{"ph", "C"}, {"name", name}, {"pid", process}, {"ts", time_us}, {"args", std::move(values)}});
}

Json trace_document(Json events) {
  return Json::object({{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}});
}

}  // namespace foretoken
