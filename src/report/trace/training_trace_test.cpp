#include "report/trace/training_trace.h"

#include <map>

#include <gtest/gtest.h>

namespace foretoken::training_trace_test {

PipelineTimeline example() {
  return pipeline_events("zb-h1",
                         {.stages = 3, .micro_batches = 6, .chunks = {{1, 1, 0.5}, {1, 1.5, 0.5}, {1, 1, 0.75}}});
}

TEST(TrainingTrace, is_json_that_reads_back) {
  const std::string text = pipeline_trace("zb-h1", example()).dump(0);
  EXPECT_EQ(parse_json(text, "trace").dump(0), text);
}

TEST(TrainingTrace, every_event_lies_on_the_track_of_its_stage) {
  const PipelineTimeline timeline = example();
  const Json trace = pipeline_trace("zb-h1", timeline);
  size_t spans = 0, names = 0;
  for (const Json& event : trace.find("traceEvents")->items()) {
    if (event.find("name")->string() == "thread_name") ++names;
    if (event.find("ph")->string() != "X") continue;
    const PipelineEvent& expected = timeline.events[spans++];
    EXPECT_EQ(event.find("tid")->integer(), expected.stage);
    EXPECT_EQ(event.find("ts")->number(), expected.start * 1e6);
    EXPECT_EQ(event.find("cat")->string(), pipeline_task_name(expected.kind));
    EXPECT_EQ(event.find("args")->find("micro_batch")->integer(), expected.micro_batch);
  }
  EXPECT_EQ(spans, timeline.events.size());
  EXPECT_EQ(names, 3U);
}

TEST(TrainingTrace, kinds_differ_in_colour) {
  std::map<std::string, std::string> colours;
  const Json trace = pipeline_trace("zb-h1", example());
  for (const Json& event : trace.find("traceEvents")->items()) {
    if (event.find("ph")->string() == "X") colours[event.find("cname")->string()] = event.find("cat")->string();
  }
  EXPECT_EQ(colours.size(), 3U);
}

TEST(TrainingTrace, a_timeline_for_programs_has_every_task) {
  const PipelineTimeline timeline = example();
  const Json json = timeline_json(timeline);
  EXPECT_EQ(json.find("micro_batches")->integer(), 6);
  const std::vector<Json>& tasks = json.find("tasks")->items();
  ASSERT_EQ(tasks.size(), timeline.events.size());
  for (size_t i = 0; i < tasks.size(); ++i) {
    EXPECT_EQ(tasks[i].find("stage")->integer(), timeline.events[i].stage);
    EXPECT_EQ(tasks[i].find("start")->number(), timeline.events[i].start);
    EXPECT_EQ(tasks[i].find("seconds")->number(), timeline.events[i].seconds);
  }
}

}  // namespace foretoken::training_trace_test
