#include "report/serving/overload_note.h"

#include <algorithm>

#include <fmt/format.h>

namespace foretoken {
namespace {

double mean_waiting(const ServingRun& run, double from_s, double to_s) {
  double sum = 0;
  int64_t points = 0;
  for (const TimePoint& point : run.series) {
    if (point.begin_s > to_s || point.begin_s + run.interval_s <= from_s) continue;
    sum += point.waiting;
    ++points;
  }
  return points == 0 ? 0 : sum / static_cast<double>(points);
}

// From quarter to quarter of the time in which requests arrive. A burst drains, or comes late.
bool grows_to_the_end(const ServingRun& run, const ArrivalSpan& arrivals) {
  constexpr double least_before = 0.3;  // of the queue at the end; a queue that grows evenly has 0.7
  const double begin = arrivals.first_s(), quarter = (arrivals.last_s() - begin) / 4;
  if (quarter <= 0) return false;
  const auto waiting_in = [&](int index) {
    return mean_waiting(run, begin + index * quarter, begin + (index + 1) * quarter);
  };
  const double second = waiting_in(1), third = waiting_in(2), last = waiting_in(3);
  return second <= third && third <= last && third >= least_before * last;
}

}  // namespace

std::string overload_note(const ServingRun& run, const ArrivalSpan& arrivals, std::string_view load) {
  // A queue that comes and goes holds a few requests of many.
  constexpr double least_share = 0.1, fewest = 10;
  double waiting = 0;
  for (const TimePoint& point : run.series) waiting = std::max(waiting, point.waiting);
  const auto requests = static_cast<double>(run.metrics.completed + run.metrics.rejected);
  if (waiting < fewest || waiting < least_share * requests || !grows_to_the_end(run, arrivals)) return {};
  return fmt::format(
      "The engine cannot keep up with {}: it completes {:.3g} requests/s, and up to {:.0f} of {:.0f} requests wait at "
      "once. Latencies grow with the number of requests. `foretoken plan serve` finds the highest rate within latency "
      "limits.",
      load, run.metrics.request_throughput, waiting, requests);
}

}  // namespace foretoken
