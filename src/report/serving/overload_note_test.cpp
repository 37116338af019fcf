#include "report/serving/overload_note.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foretoken::overload_note_test {

ServingRun with_queue(double waiting, int64_t completed) {
  ServingRun run;
  run.metrics.completed = completed;
  run.metrics.request_throughput = 1.64;
  run.series = {{.waiting = waiting / 2}, {.waiting = waiting}, {.waiting = 0}};
  return run;
}

TEST(OverloadNote, is_given_where_a_large_part_of_the_requests_waits) {
  EXPECT_THAT(
      overload_note(with_queue(84, 200), "5 requests/s"),
      testing::HasSubstr("cannot keep up with 5 requests/s: it completes 1.64 requests/s, and up to 84 of 200"));
  EXPECT_EQ(overload_note(with_queue(19, 200), "5 requests/s"), "");
  EXPECT_EQ(overload_note(with_queue(4, 10), "5 requests/s"), "") << "too few to tell";
}

}  // namespace foretoken::overload_note_test
