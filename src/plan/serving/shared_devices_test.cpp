#include "plan/serving/shared_devices.h"

#include <gtest/gtest.h>

#include "plan/serving/search_test_support.h"

namespace foretoken::shared_devices_test {

// A search whose winner is as many of the first devices as the model's rate says.
ServingSearchResult devices_as_asked(const ServingQuestion& question) {
  const auto devices = static_cast<int64_t>(*question.rate);
  ServingSearchResult result;
  for (const HardwareChoice& choice : question.hardware) {
    const double usd = *choice.usd_per_hour * static_cast<double>(devices);
    if (choice.most_devices < devices || usd > question.budget_usd_per_hour.value_or(usd)) continue;
    const EngineChoice engine{.device = choice.device.name};
    result.points.push_back({.layout = {.pool = {.engine = engine, .replicas = devices}, .decode = {}}});
    result.ranking = {0};
    break;
  }
  return result;
}

std::vector<ServingQuestion> questions_with(const std::vector<double>& rates) {
  std::vector<ServingQuestion> questions;
  for (const double rate : rates) {
    questions.push_back(small_question());
    ServingQuestion& question = questions.back();
    question.rate = rate;
    HardwareChoice second = question.hardware[0];
    second.device.name = "second";
    second.usd_per_hour = 3;
    question.hardware[0].most_devices = 6;
    second.most_devices = 4;
    question.hardware.push_back(second);
  }
  return questions;
}

SharedPlan plan_with(const std::vector<ServingQuestion>& questions) {
  return share_devices(questions, [](size_t, const ServingQuestion& question) { return devices_as_asked(question); });
}

std::string device_of_winner(const SharedPlan& plan, size_t model) {
  return plan.results[model].winner()->layout.pool.engine.device;
}

TEST(SharedDevices, models_that_fit_together_keep_their_best_layouts) {
  const SharedPlan plan = plan_with(questions_with({2, 4}));
  EXPECT_TRUE(plan.fits);
  EXPECT_EQ(device_of_winner(plan, 0), "l4");
  EXPECT_EQ(device_of_winner(plan, 1), "l4");
  EXPECT_EQ(plan.usd_per_hour(), 6);
}

TEST(SharedDevices, what_does_not_fit_goes_where_there_is_room_the_largest_first) {
  const SharedPlan plan = plan_with(questions_with({3, 5}));
  EXPECT_TRUE(plan.fits);
  EXPECT_EQ(device_of_winner(plan, 1), "l4");
  EXPECT_EQ(device_of_winner(plan, 0), "second");
  EXPECT_EQ(plan.usd_per_hour(), 5 + 3 * 3);
}

TEST(SharedDevices, too_few_devices_or_too_little_money_is_said) {
  EXPECT_FALSE(plan_with(questions_with({5, 5})).fits);
  EXPECT_FALSE(plan_with(questions_with({7})).fits);
  std::vector<ServingQuestion> questions = questions_with({3, 5});
  for (ServingQuestion& question : questions) question.budget_usd_per_hour = 13;
  EXPECT_FALSE(plan_with(questions).fits);
  for (ServingQuestion& question : questions) question.budget_usd_per_hour = 14;
  EXPECT_TRUE(plan_with(questions).fits);
}

}  // namespace foretoken::shared_devices_test
