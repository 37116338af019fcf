// Events of a Chrome trace (JSON object format), which Perfetto and chrome://tracing open. Times are microseconds.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/json.h"

namespace foretoken {

// Names a process or one of its tracks.
Json process_name_event(int64_t process, std::string_view name);
Json track_name_event(int64_t process, int64_t track, std::string_view name);

struct TraceSpan {
  std::string_view category, name;
  int64_t process = 0, track = 0;
  double begin_us = 0, duration_us = 0;
  std::string_view colour;  // one of chrome://tracing's names; Perfetto chooses by the span's name. Empty = none
};
Json complete_event(const TraceSpan& span, Json arguments);

// Values over time, drawn as one graph.
Json counter_event(int64_t process, std::string_view name, double time_us, Json values);

Json trace_document(Json events);

}  // namespace foretoken
