#include "report/serving/overload_note.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foretoken::overload_note_test {

// One point a second.
ServingRun with_queue(const std::vector<double>& waiting, int64_t completed, int64_t rejected = 0) {
  ServingRun run;
  run.metrics.completed = completed;
  run.metrics.rejected = rejected;
  run.metrics.request_throughput = 1.64;
  run.interval_s = 1;
  for (const double one : waiting) {
    run.series.push_back({.begin_s = static_cast<double>(run.series.size()), .waiting = one});
  }
  return run;
}

// Requests arrive for eight seconds.
std::string note(const ServingRun& run) {
  ArrivalSpan arrivals;
  for (const double second : {7.9, 0.1}) {
    arrivals.request_ended({.outcome = RequestOutcome::completed, .arrival = to_picoseconds(Seconds(second))});
  }
  return overload_note(run, arrivals, "5 requests/s");
}

TEST(OverloadNote, is_given_where_the_queue_grows_as_long_as_requests_arrive) {
  const std::vector<double> growing = {10, 20, 30, 40, 50, 60, 70, 84, 60, 40, 20, 0};
  EXPECT_THAT(
      note(with_queue(growing, 200)),
      testing::HasSubstr("cannot keep up with 5 requests/s: it completes 1.64 requests/s, and up to 84 of 200"));
  EXPECT_THAT(note(with_queue(growing, 200, 50)), testing::HasSubstr("up to 84 of 250")) << "all requests count";
  EXPECT_EQ(note(with_queue(growing, 2000)), "") << "few of many";
  EXPECT_EQ(note(with_queue({1, 1, 2, 2, 3, 3, 4, 4}, 10)), "") << "too few to tell";
}

TEST(OverloadNote, is_not_given_for_bursts) {
  EXPECT_EQ(note(with_queue({0, 84, 70, 50, 30, 10, 0, 0, 0}, 200)), "") << "early";
  EXPECT_EQ(note(with_queue({0, 0, 0, 84, 80, 60, 40, 20, 0}, 200)), "") << "in the middle";
  EXPECT_EQ(note(with_queue({0, 1, 0, 1, 0, 2, 84, 60, 20, 0}, 200)), "") << "at the end";
}

}  // namespace foretoken::overload_note_test
