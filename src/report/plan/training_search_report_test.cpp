#include "report/plan/training_search_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hardware/catalogue.h"
#include "model/step_test_models.h"

namespace foretoken::training_search_report_test {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

RankedPlan ranked_plan(double seconds, double gigabytes, int64_t micro_batch) {
  return {.plan = {.parallel = {.tensor = 2, .data = 4}, .micro_batch = micro_batch, .global_batch = 64},
          .seconds = {.value = seconds, .low = seconds, .high = seconds},
          .memory = Bytes(1e9 * gigabytes),
          .tokens_per_second_per_device = 1000 / seconds};
}

TrainingQuestion searched_question() {
  TrainingQuestion question{.job = {.model = step_test::llama_like()}};
  question.cluster = HardwareCatalogue(FORETOKEN_SOURCE_DIR "/data/hardware").cluster("h100_ib_rail");
  question.convention = &flop_conventions().front();
  return question;
}

TEST(TrainingSearchReport, shows_every_best_plan_and_of_similar_memory_the_fastest_alone) {
  const TrainingSearchResult result{
      .best = {ranked_plan(1, 60, 4), ranked_plan(1.5, 30, 2)},
      .frontier = {ranked_plan(3, 20, 1), ranked_plan(2.75, 58, 2), ranked_plan(1, 60, 4)},
      .looked_at = 123,
      .too_large = 45,
      .estimated = 6};
  const std::string text = training_search_text(searched_question(), result);
  EXPECT_THAT(text, HasSubstr("45 of them too large, 6 estimated in full"));
  EXPECT_THAT(text, HasSubstr("1.50 s"));
  EXPECT_THAT(text, HasSubstr("3.00 s"));
  EXPECT_THAT(text, Not(HasSubstr("2.75 s")));
  EXPECT_THAT(text, HasSubstr("--tensor-model-parallel-size 2"));

  const std::string json = training_search_json(searched_question(), result).dump(0);
  EXPECT_THAT(json, HasSubstr("2.75"));
  EXPECT_THAT(json, HasSubstr("\"megatron_flags\""));
}

TEST(TrainingSearchReport, says_why_a_slower_plan_stands_first) {
  TrainingSearchResult result{.best = {ranked_plan(1, 60, 4), ranked_plan(1.5, 30, 2)}};
  EXPECT_EQ(faster_than_first(result), nullptr);
  const std::string sorted = training_search_text(searched_question(), result);
  EXPECT_THAT(sorted, AllOf(HasSubstr("The fastest plan, for"), Not(HasSubstr("5% longer"))));
  result.best.push_back(ranked_plan(0.97, 60, 4));
  const std::string cautious = training_search_text(searched_question(), result);
  EXPECT_THAT(cautious, AllOf(HasSubstr("Row 3 takes 970 ms"), HasSubstr("The first plan, for")));
}

}  // namespace foretoken::training_search_report_test
