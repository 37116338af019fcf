#include "report/training/rlhf_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foretoken::rlhf_report_test {

using testing::HasSubstr;
using testing::Not;

RlhfReport overlapped_loop() {
  RlhfReport report{.model = "m", .cluster = "c"};
  report.plan = {.algorithm = *find_rlhf_algorithm("grpo"),
                 .prompts = 4,
                 .responses = {.mean = 100, .sigma = 0},
                 .engine = {.devices = 2, .step_seconds = 0.01},
                 .actor = {.forward_device_seconds = 1e-3, .training_device_seconds = 4e-3},
                 .placement = RlhfPlacement::split,
                 .timing = RlhfTiming::one_step_behind,
                 .devices = 8};
  report.iteration = rlhf_iteration(report.plan, 4);
  report.seconds = {.value = report.iteration.seconds, .low = 0.9 * report.iteration.seconds, .high = 999};
  return report;
}

TEST(RlhfReport, tells_pools_and_parts_and_which_of_them_are_hidden) {
  const std::string text = rlhf_text(overlapped_loop());
  for (const char* part : {"split, one step behind", "4 prompts x 16 answers", "rollout: 4 devices",
                           "training: 4 devices", "generation", "hidden"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_THAT(text, Not(HasSubstr("new weights"))) << "parts that take no time are left out";
}

TEST(RlhfReport, json_has_every_part_and_those_not_hidden_add_up) {
  const Json json = rlhf_json(overlapped_loop());
  double sum = 0;
  for (const Json& part : json.find("parts")->items()) {
    if (!part.find("hidden")->boolean()) sum += part.find("seconds")->number();
  }
  EXPECT_NEAR(sum, json.find("seconds")->number(), 1e-12);
  EXPECT_EQ(json.find("pools")->items().size(), 2U);
  EXPECT_EQ(json.find("intervals")->find("seconds")->find("high")->number(), 999);
}

TEST(RlhfReport, a_limit_that_cuts_answers_or_the_cache_that_holds_few_is_said) {
  RlhfReport report = overlapped_loop();
  EXPECT_TRUE(rlhf_notes(report).empty());
  report.plan.responses = {.mean = 20'000, .sigma = 0.7, .most = 8192};
  report.engine = ServingMemory{.starts = true};
  report.plan.engine.most_sequences = 40;
  report.asked_sequences = 256;
  EXPECT_THAT(rlhf_notes(report),
              testing::ElementsAre(HasSubstr("instead of 20000"), HasSubstr("room for 40 answers")));
}

TEST(RlhfReport, what_does_not_fit_is_said_first) {
  RlhfReport report = overlapped_loop();
  EXPECT_EQ(rlhf_failure(report), "");
  report.trainers.actor.parameters = gigabytes(100);
  report.trainers.capacity = gigabytes(80);
  report.trainers.verdict = MemoryVerdict::too_large;
  EXPECT_THAT(rlhf_text(report), testing::StartsWith("Out of memory: training m"));
  EXPECT_FALSE(rlhf_json(report).find("fits")->boolean());
}

}  // namespace foretoken::rlhf_report_test
