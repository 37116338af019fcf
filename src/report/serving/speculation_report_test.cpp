#include "report/serving/speculation_report.h"

#include <gtest/gtest.h>

namespace foretoken::speculation_report_test {

SpeculationReport some_report(std::optional<int64_t> break_even) {
  SpeculationReport report{
      .model = "m",
      .device = "d",
      .method = "eagle3",
      .speculation = {.draft_tokens = 2, .verified_tokens = 6, .acceptance = Acceptance({0.5, 0.25}, "test")}};
  const SpeculationPoint point{.batch = 8,
                               .context = 1000,
                               .plain_seconds = exactly(0.010),
                               .speculated_seconds = exactly(0.014),
                               .verify_seconds = 0.012,
                               .tokens = {.value = 1.75, .low = 1.5, .high = 2},
                               .speedup = exactly(1.25)};
  report.contexts.push_back(
      {.tokens = 1000, .points = {point}, .break_even = break_even, .earliest_break_even = 7, .largest_batch = 8});
  return report;
}

TEST(SpeculationReport, tells_parts_of_a_step_and_what_they_yield) {
  const std::string text = speculation_text(some_report(31));
  for (const char* part : {"2 drafts deep in a tree of 6", "1.75 tokens", "10.0 ms", "12.0 ms", "2.00 ms", "1.25x",
                           "Speculative decoding stops paying off at a batch of 31.",
                           "At the low end of the 90% interval, it "
                           "stops paying off at a batch of 7."}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(SpeculationReport, says_when_it_pays_off_again_at_larger_batches) {
  EXPECT_EQ(speculation_text(some_report(31)).find("pays off again"), std::string::npos);
  const std::string text = speculation_text(some_report(5));
  EXPECT_NE(text.find("stops paying off at a batch of 5.\nIt pays off again at a batch of 8."), std::string::npos)
      << text;
}

TEST(SpeculationReport, says_when_it_pays_everywhere) {
  EXPECT_NE(speculation_text(some_report({})).find("Speculative decoding pays off at every batch up to 8."),
            std::string::npos);
}

TEST(SpeculationReport, says_where_memory_ends) {
  SpeculationReport report = some_report({});
  EXPECT_EQ(speculation_text(report).find("memory"), std::string::npos);
  EXPECT_EQ(speculation_failure(report), "");
  report.contexts[0].memory_ends_here = true;
  EXPECT_NE(speculation_text(report).find("Batches above 8 do not fit in memory"), std::string::npos);
  report.contexts[0].points.clear();
  report.contexts[0].largest_batch = 1;
  EXPECT_NE(speculation_text(report).find("at most 1 sequence of 1000 tokens"), std::string::npos);
  EXPECT_NE(speculation_failure(report).find("Out of memory"), std::string::npos);
}

TEST(SpeculationReport, an_acceptance_that_nobody_gave_is_said) {
  Speculation speculation = some_report({}).speculation;
  EXPECT_EQ(assumed_acceptance_note(speculation), "");
  speculation.unknown_acceptance = {speculation.acceptance.tilted(-1), speculation.acceptance.tilted(1)};
  EXPECT_NE(assumed_acceptance_note(speculation).find("1.75 tokens per verification step are assumed"),
            std::string::npos);
}

TEST(SpeculationReport, json_has_the_same_numbers) {
  const Json json = speculation_json(some_report(31));
  const Json& context = json.find("contexts")->items().front();
  EXPECT_EQ(context.find("break_even_batch")->integer(), 31);
  EXPECT_DOUBLE_EQ(context.find("points")->items().front().find("tokens_per_step")->number(), 1.75);
  EXPECT_EQ(context.find("earliest_break_even_batch")->integer(), 7);
  EXPECT_EQ(json.find("acceptance_rates")->items().size(), 2U);
}

}  // namespace foretoken::speculation_report_test
