#include "report/training/training_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/accuracy/training_fit_report.h"

namespace foretoken::training_report_test {

using testing::HasSubstr;
using testing::Not;

TrainingQuestion reported_question() {
  TrainingQuestion question{.plan = {.parallel = {.tensor = 2, .pipeline = 4, .data = 8, .sequence = true},
                                     .global_batch = 64,
                                     .sharding = Sharding::optimizer}};
  question.job.model.name = "model";
  question.job.sequence_length = 4096;
  question.stack.name = "stack";
  question.cluster.name = "cluster";
  question.cluster.node.device.name = "device";
  question.cluster.node.device.title = "Device";
  return question;
}

TrainingEstimate reported_estimate() {
  TrainingEstimate estimate;
  estimate.iteration.seconds = {.value = 2, .low = 1.8, .high = 2.4};
  estimate.iteration.parts[static_cast<size_t>(TimePart::linear)] = {1.5, 1.4, 1.8, Confidence::interpolated};
  estimate.iteration.parts[static_cast<size_t>(TimePart::bubble)] = exactly(0.5);
  estimate.iteration.composed = {.value = 2, .low = 1.9, .high = 2.3, .kind = Confidence::interpolated};
  estimate.iteration.families = {{.family = "gemm", .seconds = {1.5, 1.4, 1.8, Confidence::interpolated}}};
  estimate.iteration.tokens_per_second = 131072;
  estimate.iteration.slowest_stage = 3;
  estimate.memory.stages.resize(4);
  estimate.memory.fullest = 0;
  estimate.memory.stages.front().parameters = Bytes(90e9);
  estimate.capacity = Bytes(80e9);
  estimate.fits = false;
  estimate.verdict = MemoryVerdict::too_large;
  estimate.advice.push_back({.sentence = "recompute everything"});
  estimate.use.convention = "model-3x-causal-half";
  return estimate;
}

// Without the breaks that wrapping makes.
std::string in_one_line(const std::string& text) {
  std::string line;
  for (const char letter : text) {
    const char one = letter == '\n' ? ' ' : letter;
    if (one != ' ' || line.empty() || line.back() != ' ') line += one;
  }
  return line;
}

TEST(TrainingReport, host_memory_that_is_too_small_is_a_failure_of_its_own) {
  TrainingEstimate estimate = reported_estimate();
  estimate.verdict = MemoryVerdict::fits;
  estimate.host = {.of_device = Bytes(3e11), .of_host = Bytes(2.4e12), .capacity = Bytes(2e12)};
  EXPECT_THAT(training_failure(reported_question(), estimate),
              HasSubstr("Each node needs 2.40 TB but has only 2.00 TB"));
}

TEST(TrainingReport, text_tells_plan_parts_and_what_does_not_fit) {
  const std::string text = training_text(reported_question(), reported_estimate());
  for (const char* part : {"tensor 2 with sequence parallelism", "pipeline 4 (1f1b)", "data 8", "8 micro-batches of 1",
                           "sharding optimizer", "75.0%", "stage 3", "DOES NOT FIT", "to fit: recompute everything",
                           "model-3x-causal-half", "-7% +20%", "0.95 to 1.15 times",
                           "Largest source of kernel and network uncertainty: linear (100%)"}) {
    EXPECT_THAT(in_one_line(text), HasSubstr(part));
  }
  EXPECT_THAT(text, Not(HasSubstr("optimizer  "))) << "parts that take no time are left out of the table";
  EXPECT_THAT(text, Not(HasSubstr("tokens: "))) << "no long run was asked for";
}

TEST(TrainingReport, json_has_every_part_and_stage) {
  TrainingQuestion question = reported_question();
  question.job.dropout.attention = true;
  const Json json = training_json(question, reported_estimate());
  EXPECT_FALSE(json.find("dropout")->find("hidden")->boolean());
  EXPECT_TRUE(json.find("dropout")->find("attention")->boolean());
  EXPECT_EQ(json.find("parts_seconds")->find("bubble")->number(), 0.5);
  EXPECT_EQ(json.find("parts_seconds")->find("data")->number(), 0);
  EXPECT_EQ(json.find("parts")->find("linear")->find("high")->number(), 1.8);
  EXPECT_EQ(json.find("parts")->find("linear")->find("confidence")->string(), "interpolated");
  EXPECT_EQ(json.find("parts")->find("bubble")->find("low"), nullptr) << "no interval of its own";
  EXPECT_EQ(json.find("kernels")->items().front().find("family")->string(), "gemm");
  EXPECT_EQ(json.find("interval_basis")->find("kernels_low")->number(), 0.95);
  EXPECT_EQ(json.find("memory")->find("stages")->items().size(), 4U);
  EXPECT_FALSE(json.find("memory")->find("fits")->boolean());
  EXPECT_EQ(json.find("plan")->find("micro_batches")->integer(), 8);
  EXPECT_EQ(json.find("plan")->find("devices")->integer(), 64);
  EXPECT_EQ(json.find("run"), nullptr);
}

TEST(TrainingFitReport, has_a_line_for_every_stack_and_run) {
  TrainingFit fit{.stacks = {{.name = "megatron", .runs = 12, .interval = RunInterval{.low = 0.9, .high = 1.1}}},
                  .runs = {{.id = "r,1", .source = "s", .stack = "megatron", .measured_s = 1.5, .seen_s = 1.25}},
                  .constants = 7};
  EXPECT_THAT(training_fit_text(fit), HasSubstr("7 constants in 1 stack"));
  EXPECT_THAT(training_fit_text(fit), HasSubstr("90% of runs took 0.90 to 1.10 times"));
  EXPECT_THAT(fitted_runs_csv(fit), HasSubstr("\"r,1\",s,megatron,1.5,1.25,0\n"));
  EXPECT_EQ(training_fit_json(fit).find("stacks")->items().size(), 1U);
}

}  // namespace foretoken::training_report_test
