// A profiler trace carried to another GPU or parallel plan, for people and for programs.
#pragma once

#include <string>

#include "base/json.h"
#include "compose/profile/ported_trace.h"

namespace foretoken {

struct PortOrigin {
  std::string source;
  Device from, to;
  ParallelPlan recorded = {}, wanted = {};
  std::string named_in_trace = {};  // where it is not the GPU that the user says was profiled
};

std::string ported_trace_text(const PortedTrace& ported, const PortOrigin& origin);
Json ported_trace_json(const PortedTrace& ported, const PortOrigin& origin);

}  // namespace foretoken
