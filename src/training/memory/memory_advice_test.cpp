#include "training/memory/memory_advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include <fmt/format.h>

#include "model/step_test_models.h"

namespace foretoken::memory_advice_test {

using step_test::llama_like;
using testing::HasSubstr;

constexpr int64_t length = 4096;

// Recomputing a layer costs a third more, other changes little; an optimizer in host memory by its size.
constexpr double seconds_per_optimizer_byte = 1e-11;
Seconds guessed_step(const TrainingPlan& plan, const TrainingFormats&, const PlanMemory& memory) {
  double seconds = 1;
  if (plan.recompute == Recompute::full) {
    seconds += plan.recompute_layers == 0 ? 0.33 : 0.033 * static_cast<double>(plan.recompute_layers);
  }
  seconds += 0.02 * static_cast<double>(plan.parallel.tensor - 1) + 0.05 * static_cast<double>(plan.sharding);
  seconds += seconds_per_optimizer_byte * memory.most().away_optimizer.value();
  return Seconds(seconds);
}

TrainingMemory memory_of(const TrainingPlan& plan, const TrainingFormats& formats = {}) {
  return plan_memory(training_parts(llama_like(), length, plan, formats), plan, formats, {}).most();
}
Bytes need_of(const TrainingPlan& plan, const TrainingFormats& formats = {}) {
  return memory_of(plan, formats).total();
}

std::vector<MemoryAdvice> advice_for(const TrainingPlan& plan, Bytes capacity) {
  return memory_advice(llama_like(), length, plan, {}, {.usable = 1}, capacity, guessed_step);
}

TEST(MemoryAdvice, is_not_given_where_the_plan_fits) {
  EXPECT_TRUE(advice_for({}, need_of({})).empty());
}

TEST(MemoryAdvice, fits_costs_more_from_one_to_the_next_and_keeps_devices_and_batch) {
  const TrainingPlan plan{.parallel = {.tensor = 2, .data = 8}, .micro_batch = 4, .global_batch = 128};
  for (const double share : {0.95, 0.8, 0.6, 0.4, 0.3}) {
    const Bytes capacity = share * need_of(plan) / memory_tolerance;
    const std::vector<MemoryAdvice> advice = advice_for(plan, capacity);
    ASSERT_FALSE(advice.empty()) << share;
    Seconds before;
    for (const MemoryAdvice& one : advice) {
      EXPECT_TRUE(fits(need_of(one.plan, one.formats), capacity)) << one.sentence;
      EXPECT_EQ(one.need, need_of(one.plan, one.formats)) << one.sentence;
      EXPECT_TRUE(is_valid_plan(llama_like(), length, one.plan, plan.devices())) << one.sentence;
      EXPECT_EQ(one.plan.devices(), plan.devices()) << one.sentence;
      EXPECT_EQ(one.plan.global_batch, plan.global_batch);
      EXPECT_GE(one.step, before) << one.sentence;
      before = one.step;
    }
  }
}

TEST(MemoryAdvice, names_sequence_parallelism_first_where_it_is_enough_and_free) {
  const TrainingPlan plan{.parallel = {.tensor = 4, .data = 2}, .micro_batch = 4, .global_batch = 8};
  const std::vector<MemoryAdvice> advice = advice_for(plan, 0.9 * need_of(plan));
  ASSERT_FALSE(advice.empty());
  EXPECT_TRUE(advice.front().plan.parallel.sequence);
  EXPECT_THAT(advice.front().sentence, HasSubstr("{sequence_parallel}"));
  EXPECT_THAT(advice.front().sentence, HasSubstr("0.0% more time"));
}

TEST(MemoryAdvice, recomputes_no_more_layers_than_needed) {
  const TrainingPlan plan{};
  const Bytes capacity = 0.9 * need_of(plan);
  const std::vector<MemoryAdvice> advice = advice_for(plan, capacity);
  const auto partly =
      std::find_if(advice.begin(), advice.end(), [](const MemoryAdvice& one) { return one.plan.recompute_layers > 0; });
  ASSERT_NE(partly, advice.end());
  TrainingPlan fewer = partly->plan;
  ASSERT_GT(fewer.recompute_layers, 1);
  --fewer.recompute_layers;
  EXPECT_GT(need_of(fewer), capacity);
}

TEST(MemoryAdvice, combines_changes_where_one_is_not_enough) {
  const TrainingPlan plan{.parallel = {.data = 4}, .micro_batch = 8, .global_batch = 64};
  const Bytes capacity = 0.15 * need_of(plan);
  const std::vector<MemoryAdvice> advice = advice_for(plan, capacity);
  ASSERT_FALSE(advice.empty());
  EXPECT_THAT(advice.front().sentence, HasSubstr(" and "));
}

TEST(MemoryAdvice, asks_for_the_step_of_what_is_in_host_memory_before_and_after) {
  const TrainingPlan plan{};
  const double all = seconds_per_optimizer_byte * memory_of(plan).optimizer.value();
  for (const double away : {0.0, 0.25}) {
    const TrainingFormats formats{.offloaded_optimizer = away};
    const std::vector<MemoryAdvice> advice =
        memory_advice(llama_like(), length, plan, formats, {.usable = 1}, 0.8 * need_of(plan, formats), guessed_step);
    const auto moved = std::find_if(advice.begin(), advice.end(),
                                    [](const MemoryAdvice& one) { return one.formats.offloaded_optimizer == 1; });
    ASSERT_NE(moved, advice.end());
    EXPECT_DOUBLE_EQ(moved->step.value(), 1 + all);
    const double more = 100 * ((1 + all) / (1 + away * all) - 1);
    EXPECT_THAT(moved->sentence, HasSubstr(fmt::format(", {:.1f}% more time", more)));
  }
}

TEST(MemoryAdvice, is_empty_where_nothing_helps) {
  EXPECT_TRUE(advice_for({}, Bytes(1e6)).empty());
}

}  // namespace foretoken::memory_advice_test
