#include "report/training/pipeline_chart.h"

#include <gtest/gtest.h>

namespace foretoken::pipeline_chart_test {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  size_t begin = 0;
  for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

PipelineTimeline even_timeline(std::string_view schedule, int64_t stages, int64_t micro_batches) {
  PipelineWork work{.stages = stages, .micro_batches = micro_batches};
  work.chunks.assign(static_cast<size_t>(stages), {1, 1, 1});
  return pipeline_events(schedule, work);
}

TEST(PipelineChart, shows_one_column_for_each_slice) {
  // Two micro-batches on two stages take 9 seconds, each 3 of 27 columns; 10 more are the margin.
  const std::vector<std::string> lines = lines_of(pipeline_chart(even_timeline("1f1b", 2, 2), 37));
  const std::vector<std::string> expected = {"stage 0 |FFFFFF......BBBBBB...BBBBBB|",
                                             "stage 1 |...FFFBBBBBBFFFBBBBBB......|",
                                             "         0                    9.00 s", "F forward, B backward, . idle"};
  EXPECT_EQ(lines, expected);
}

TEST(PipelineChart, stays_within_the_width_for_any_number_of_stages) {
  for (const int64_t stages : {1, 9, 16, 120}) {
    for (const std::string& line : lines_of(pipeline_chart(even_timeline("zb-h1", stages, 2 * stages)))) {
      EXPECT_LE(line.size(), page_width()) << line;
    }
  }
}

TEST(PipelineChart, an_empty_timeline_has_no_chart) {
  EXPECT_EQ(pipeline_chart({}), "");
}

}  // namespace foretoken::pipeline_chart_test
