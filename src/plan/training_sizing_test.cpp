#include "plan/training_sizing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "model/step_test_models.h"
#include "training/test_machine.h"

namespace foretoken::training_sizing_test {

using testing::ElementsAre;
using training_test::library_cluster;
using training_test::roofline_machine;
using training_test::shipped_stack;

constexpr int64_t sizing_nodes = 4;

TrainingQuestion sized_question() {
  TrainingQuestion question{.job = {.model = step_test::llama_like(), .sequence_length = 4096},
                            .devices = 8 * sizing_nodes,
                            .stack = shipped_stack(),
                            .cluster = library_cluster(sizing_nodes),
                            .convention = &flop_conventions().front()};
  question.plan.global_batch = 64;
  question.run = LongRun{.tokens = 1e11, .usd_per_device_hour = 2};
  question.run->checkpoints.storage_bytes_per_second = 8e9;
  return question;
}

JobSizing sizing_of(const TrainingQuestion& question, SizingGoal goal, const SizingLimits& limits,
                    bool may_offload = false) {
  const std::unique_ptr<MachineModels> machine = roofline_machine(sizing_nodes);
  return size_training(question, *machine, {.best = 1, .may_offload = may_offload}, goal, limits);
}

int64_t devices_of(const JobSizing& sizing, const std::optional<size_t>& place) {
  return place ? sizing.sizes[*place].devices : 0;
}

double days_at(const JobSizing& sizing, size_t place) {
  return sizing.sizes[place].estimate->run->run.days.value;
}

TEST(TrainingSizing, tries_parts_of_a_node_whole_nodes_and_all_devices) {
  EXPECT_THAT(sizes_to_try(8, 50), ElementsAre(1, 2, 4, 8, 16, 24, 32, 40, 48, 50));
  EXPECT_THAT(sizes_to_try(8, 3), ElementsAre(1, 2, 3));
  const std::vector<int64_t> many = sizes_to_try(1, 70);
  EXPECT_THAT(std::vector(many.begin() + 14, many.end()),
              ElementsAre(15, 16, 18, 20, 22, 24, 26, 28, 30, 32, 36, 40, 44, 48, 52, 56, 60, 64, 70));
}

TEST(TrainingSizing, a_deadline_is_met_with_the_fewest_devices) {
  const TrainingQuestion question = sized_question();
  const JobSizing all = sizing_of(question, SizingGoal::speed, {});
  ASSERT_EQ(devices_of(all, all.chosen), question.devices) << "more devices are faster";
  const size_t some = 2;
  const JobSizing sizing = sizing_of(question, SizingGoal::fewest_devices, {.days = 1.001 * days_at(all, some)});
  EXPECT_EQ(devices_of(sizing, sizing.chosen), all.sizes[some].devices);
  EXPECT_FALSE(keeps_limits(sizing.sizes[some - 1], sizing.limits));

  const double slow_end = all.sizes.back().estimate->run->run.days.high;
  const JobSizing safe = sizing_of(question, SizingGoal::fewest_devices, {.days = 1.001 * slow_end});
  EXPECT_EQ(devices_of(safe, safe.cautious), question.devices);
  EXPECT_LT(devices_of(safe, safe.chosen), question.devices);
}

TEST(TrainingSizing, a_budget_buys_the_fastest_run_that_it_pays_for) {
  const TrainingQuestion question = sized_question();
  const JobSizing all = sizing_of(question, SizingGoal::cost, {});
  const double least = all.sizes[all.chosen.value()].estimate->run->run.usd->value;
  for (const JobSize& size : all.sizes) {
    if (size.estimate) {
      EXPECT_GE(size.estimate->run->run.usd->value, least) << size.devices;
    }
  }
  const JobSizing sizing = sizing_of(question, SizingGoal::speed, {.usd = 1.02 * least});
  ASSERT_TRUE(sizing.chosen);
  EXPECT_LE(sizing.sizes[*sizing.chosen].estimate->run->run.usd->value, 1.02 * least);
  for (size_t i = 0; i < sizing.sizes.size(); ++i) {
    if (keeps_limits(sizing.sizes[i], sizing.limits)) {
      EXPECT_GE(days_at(sizing, i), days_at(sizing, *sizing.chosen));
    }
  }
  EXPECT_FALSE(sizing_of(question, SizingGoal::speed, {.usd = 0.5 * least}).chosen);
}

TEST(TrainingSizing, the_fewest_devices_are_those_whose_memory_holds_the_job) {
  TrainingQuestion question = sized_question();
  question.run.reset();
  question.overheads.usable = 0.06;  // of 80 GB: one device does not hold it
  const JobSizing sizing = sizing_of(question, SizingGoal::fewest_devices, {});
  ASSERT_TRUE(sizing.chosen);
  ASSERT_GT(*sizing.chosen, 0U);
  EXPECT_TRUE(sizing.sizes[*sizing.chosen - 1].nearest);
  EXPECT_GT(sizing.sizes[*sizing.chosen - 1].nearest->memory, sizing.sizes[*sizing.chosen - 1].nearest->capacity);
  // The optimizer's state in host memory saves devices, where it may go there.
  const JobSizing offloaded = sizing_of(question, SizingGoal::fewest_devices, {}, true);
  ASSERT_TRUE(offloaded.chosen);
  EXPECT_LT(*offloaded.chosen, *sizing.chosen);
  EXPECT_TRUE(offloaded.sizes[*offloaded.chosen].search->offloads_optimizer);
  EXPECT_FALSE(offloaded.sizes[*sizing.chosen].search->offloads_optimizer);
}

TEST(TrainingSizing, a_size_that_no_number_of_devices_divides_is_an_error) {
  const std::unique_ptr<MachineModels> machine = roofline_machine(sizing_nodes);
  TrainingPlanOptions options{.best = 1};
  options.choices.tensor = 7;
  EXPECT_THROW(size_training(sized_question(), *machine, options, SizingGoal::fewest_devices, {}), InputError);
}

TEST(TrainingSizing, checkpoints_of_fewer_nodes_take_longer_to_write) {
  const TrainingQuestion fewer = on_devices(sized_question(), 8);
  EXPECT_EQ(fewer.devices, 8);
  EXPECT_EQ(fewer.run->checkpoints.storage_bytes_per_second, 2e9);
}

}  // namespace foretoken::training_sizing_test
