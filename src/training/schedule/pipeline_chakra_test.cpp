#include "training/schedule/pipeline_chakra.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "network/replay/chakra_workload.h"
#include "network/replay/replay.h"
#include "training/schedule/test_pipelines.h"

namespace foretoken::pipeline_chakra_test {

constexpr PipelineMessageBytes message_bytes{.forward = 1000, .backward = 2000};

ReplayWorkload workload_of(const std::vector<ChakraTrace>& traces) {
  return chakra_workload(
      [&](int64_t rank) { return ChakraReader(chakra_text(traces[static_cast<size_t>(rank)]), "trace"); },
      {.ranks = static_cast<int64_t>(traces.size())});
}

TEST(PipelineChakra, a_replay_ends_when_the_timeline_does) {
  for (const std::string& schedule : pipeline_schedule_names()) {
    RandomStream stream(1, schedule);
    for (int round = 0; round < 10; ++round) {
      const PipelineWork work = random_pipeline(schedule, stream, 20);
      const PipelineTimeline timeline = pipeline_events(schedule, work);
      const auto network = undisturbed_network([&](const NetworkCall& call) {
        return Seconds(call.bytes == message_bytes.forward ? work.send_forward : work.send_backward);
      });
      const ReplayResult replayed =
          replay(workload_of(pipeline_chakra(schedule, work, timeline, message_bytes)), *network);
      double end = 0;
      for (const PipelineEvent& event : timeline.events) end = std::max(end, event.start + event.seconds);
      EXPECT_NEAR(to_seconds(replayed.makespan).value(), end, 1e-8 * end) << described(schedule, work);
    }
  }
}

TEST(PipelineChakra, sends_only_what_crosses_stages) {
  const auto messages = [](std::string_view schedule, int64_t virtual_stages) {
    const PipelineWork work = runnable_pipeline(schedule, 4, virtual_stages, 8);
    int64_t sends = 0, receives = 0;
    for (const ChakraTrace& trace : pipeline_chakra(schedule, work, pipeline_events(schedule, work), message_bytes)) {
      for (const ChakraNode& node : trace.nodes) {
        if (node.type == ChakraNodeType::send) ++sends;
        if (node.type == ChakraNodeType::receive) ++receives;
      }
    }
    EXPECT_EQ(sends, receives) << schedule;
    return sends;
  };
  EXPECT_EQ(messages("1f1b", 1), 8 * 2 * 3);
  EXPECT_EQ(messages("interleaved", 2), 8 * 2 * 7);
  EXPECT_EQ(messages("zb-v", 2), 8 * 2 * 6) << "the fold stays on the last stage";
}

}  // namespace foretoken::pipeline_chakra_test
