#include "report/serving/overload_note.h"

#include <algorithm>

#include <fmt/format.h>

namespace foretoken {

std::string overload_note(const ServingRun& run, std::string_view load) {
  // A queue that comes and goes holds a few requests of many.
  constexpr double least_share = 0.1, fewest = 10;
  double waiting = 0;
  for (const TimePoint& point : run.series) waiting = std::max(waiting, point.waiting);
  const auto served = static_cast<double>(run.metrics.completed);
  if (waiting < fewest || waiting < least_share * served) return {};
  return fmt::format(
      "The engine cannot keep up with {}: it completes {:.3g} requests/s, and up to {:.0f} of {:.0f} requests wait at "
      "once. Latencies grow with the number of requests. `foretoken plan serve` finds the highest rate within latency "
      "limits.",
      load, run.metrics.request_throughput, waiting, served);
}

}  // namespace foretoken
