#include "report/plan/training_sizing_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hardware/catalogue.h"
#include "model/step_test_models.h"

namespace foretoken::training_sizing_report_test {

using testing::HasSubstr;

Estimate about(double value) {
  return {.value = value, .low = 0.9 * value, .high = 1.2 * value};
}

JobSize job_size(int64_t devices, double days) {
  TrainingEstimate estimate;
  estimate.run.emplace();
  estimate.run->run.days = about(days);
  estimate.run->run.usd = about(48 * days * static_cast<double>(devices));
  return {.devices = devices,
          .search = TrainingSearchResult{.best = {{.seconds = about(days), .memory = Bytes(4e10)}}},
          .estimate = std::move(estimate)};
}

JobSizing three_sizes() {
  JobSizing sizing{.goal = SizingGoal::fewest_devices, .limits = {.days = 30}};
  sizing.sizes.push_back({.devices = 8, .nearest = NearestPlan{.memory = Bytes(1e11), .capacity = Bytes(7.6e10)}});
  for (const auto& [devices, days] : {std::pair(16, 40.0), {32, 28.0}, {64, 15.0}}) {
    sizing.sizes.push_back(job_size(devices, days));
  }
  return sizing;
}

TrainingQuestion long_question() {
  TrainingQuestion question{.job = {.model = step_test::llama_like()}};
  question.cluster = HardwareCatalogue(FORETOKEN_SOURCE_DIR "/data/hardware").cluster("h100_ib_rail");
  question.run = LongRun{.tokens = 1e12, .usd_per_device_hour = 2};
  return question;
}

TEST(TrainingSizingReport, begins_with_the_choice_and_says_what_every_other_number_lacks) {
  JobSizing sizing = three_sizes();
  sizing.chosen = 2;
  sizing.cautious = 3;
  const std::string text = training_sizing_text(long_question(), sizing);
  EXPECT_TRUE(text.starts_with("32 x NVIDIA H100")) << text;
  EXPECT_THAT(text, HasSubstr("the smallest number of GPUs tried that finishes"));
  EXPECT_THAT(text, HasSubstr("use 64 GPUs: 15.0"));
  EXPECT_THAT(text, HasSubstr("out of memory: 100 GB of 76.0 GB"));
  EXPECT_THAT(text, HasSubstr("too slow"));
  EXPECT_EQ(training_sizing_failure(long_question(), sizing), "");
  const std::string json = training_sizing_json(sizing).dump(0);
  EXPECT_THAT(json, HasSubstr("\"chosen_devices\":32"));
  EXPECT_THAT(json, HasSubstr("\"cautious_devices\":64"));
  EXPECT_THAT(json, HasSubstr("\"deadline_days\":30"));
}

TEST(TrainingSizingReport, says_how_near_the_nearest_comes_where_nothing_keeps_the_limits) {
  JobSizing sizing = three_sizes();
  sizing.limits = {.days = 10};
  const std::string failure = training_sizing_failure(long_question(), sizing);
  EXPECT_THAT(failure, HasSubstr("stays within 10 days. The nearest is 64 GPUs: 15.0 days"));
  sizing.sizes.resize(1);
  EXPECT_THAT(training_sizing_failure(long_question(), sizing), HasSubstr("does not fit on any number of"));
}

}  // namespace foretoken::training_sizing_report_test
