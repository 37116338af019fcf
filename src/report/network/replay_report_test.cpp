#include "report/network/replay_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "network/replay/test_workload.h"

namespace foretoken::replay_report_test {

using testing::HasSubstr;
using testing::Not;

class ReplayReport : public testing::Test {
 protected:
  ReplayReport() : workload_(make()), result_(replay(workload_, *test_network())) {}

  static ReplayWorkload make() {
    TestWorkload workload(2);
    for (size_t rank = 0; rank < 2; ++rank) {
      const uint64_t started = workload.marker(rank);
      workload.compute(rank, 4, {workload.all_reduce(rank, 8, {workload.host(rank, 1, {started})})});
    }
    workload.send(0, 1, 2);
    workload.receive(1, 0, 2);
    ReplayWorkload built = std::move(workload).build();
    built.names = {"a \"quoted\"\nname"};
    return built;
  }

  ReplayWorkload workload_;
  ReplayResult result_;
  ReplayOrigin origin_{.prefix = "run", .network = "closed form", .compute = "recorded"};
};

TEST_F(ReplayReport, json_has_the_times_of_every_rank) {
  const Json json = replay_json(workload_, result_, origin_);
  EXPECT_DOUBLE_EQ(json.find("seconds")->number(), 13e-6);
  EXPECT_EQ(json.find("by_rank")->items().size(), 2U);
  EXPECT_DOUBLE_EQ(json.find("by_rank")->items()[0].find("compute_seconds")->number(), 4e-6);
  EXPECT_EQ(json.find("collectives")->items()[0].find("calls")->integer(), 1);
}

TEST_F(ReplayReport, text_fits_a_terminal_and_leaves_out_what_took_no_time) {
  const std::string text = replay_text(workload_, result_, origin_);
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    EXPECT_LE(end - begin, 100U);
    begin = end + 1;
  }
  EXPECT_THAT(text, HasSubstr("all_reduce"));
  EXPECT_THAT(text, Not(HasSubstr("marker")));
  EXPECT_THAT(text, Not(HasSubstr("remote memory")));
}

TEST_F(ReplayReport, a_trace_is_json_with_an_event_for_each_node_that_is_no_marker) {
  const Json trace = parse_json(replay_trace(workload_, result_, 64), "trace");
  size_t events = 0;
  double last_end = 0;
  for (const Json& event : trace.find("traceEvents")->items()) {
    if (event.find("ph")->string() != "X") continue;
    ++events;
    last_end = std::max(last_end, event.find("ts")->number() + event.find("dur")->number());
    EXPECT_EQ(event.find("name")->string(), workload_.names[0]);
  }
  EXPECT_EQ(events, 8U);
  EXPECT_DOUBLE_EQ(last_end, 13);
  EXPECT_THAT(replay_trace(workload_, result_, 1), Not(HasSubstr("rank 1")));
}

}  // namespace foretoken::replay_report_test
