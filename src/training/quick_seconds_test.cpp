// IterationModel::quick_seconds() against IterationModel::estimate(), and what both keep from plan to plan.
#include <gtest/gtest.h>

#include "base/statistics.h"
#include "model/catalogue.h"
#include "model/step_test_models.h"
#include "training/iteration.h"
#include "training/schedule/pipeline_schedule.h"
#include "training/test_machine.h"

namespace foretoken::quick_seconds_test {

using training_test::roofline_machine;
using training_test::shipped_stack;

constexpr int64_t grid_length = 4096;

// Of all kinds that differ in what may be kept.
std::vector<TrainingPlan> grid_plans(const Model& model, const std::vector<std::string>& schedules) {
  std::vector<TrainingPlan> plans;
  for (const int64_t tensor : {1, 4}) {
    for (const int64_t context : {1, 2}) {
      for (const int64_t expert : {1, 4}) {
        for (const int64_t pipeline : {1, 2, 4}) {
          for (const std::string& schedule : schedules) {
            for (const int64_t virtual_stages : {1, 2}) {
              for (const int64_t micro_batch : {1, 2}) {
                for (const Recompute recompute : {Recompute::none, Recompute::full}) {
                  for (const Sharding sharding : {Sharding::none, Sharding::optimizer, Sharding::parameters}) {
                    const TrainingPlan plan{.parallel = {.tensor = tensor,
                                                         .pipeline = pipeline,
                                                         .data = 64 / (tensor * context * pipeline),
                                                         .expert = expert,
                                                         .context = context,
                                                         .sequence = tensor > 1},
                                            .micro_batch = micro_batch,
                                            .global_batch = 512,
                                            .schedule = schedule,
                                            .virtual_stages = virtual_stages,
                                            .sharding = sharding,
                                            .recompute = recompute,
                                            .recompute_layers = recompute == Recompute::full && tensor > 1 ? 1 : 0};
                    if (is_valid_plan(model, grid_length, plan, 64)) plans.push_back(plan);
                  }
                }
              }
            }
          }
        }
      }
    }
  }
  return plans;
}

std::vector<Model> grid_models() {
  return {step_test::llama_like(), step_test::mixtral_like(), step_test::deepseek_like()};
}

TEST(QuickSeconds, are_never_more_than_an_estimate) {
  const auto machine = roofline_machine(8);
  int plans = 0;
  for (const Model& model : grid_models()) {
    IterationModel iterations({.model = model, .sequence_length = grid_length}, shipped_stack(), machine->machine());
    for (const TrainingPlan& plan : grid_plans(model, pipeline_schedule_names())) {
      if (plan.micro_batch > 1) continue;
      ++plans;
      const double exact = iterations.estimate(plan).seconds.value;
      EXPECT_LE(iterations.quick_seconds(plan), exact * (1 + 1e-9)) << model.name << " " << plan.schedule;
    }
  }
  EXPECT_GT(plans, 300);
}

TEST(QuickSeconds, are_an_estimate_where_there_is_one_stage) {
  const auto machine = roofline_machine(8);
  for (const Model& model : grid_models()) {
    IterationModel iterations({.model = model, .sequence_length = grid_length}, shipped_stack(), machine->machine());
    for (const TrainingPlan& plan : grid_plans(model, {"1f1b"})) {
      if (plan.stages() > 1) continue;
      const double exact = iterations.estimate(plan).seconds.value;
      EXPECT_NEAR(iterations.quick_seconds(plan), exact, 1e-9 * exact) << model.name;
    }
  }
}

// A model and batches as they are trained: Megatron-LM's schedules, enough micro-batches to fill the pipeline.
TEST(QuickSeconds, are_within_3_percent_of_an_estimate_and_rank_plans_alike) {
  const auto machine = roofline_machine(8);
  const Model model = ModelCatalogue(FORETOKEN_SOURCE_DIR "/data/models").model("Llama-3.1-8B");
  IterationModel iterations({.model = model, .sequence_length = grid_length}, shipped_stack(), machine->machine());
  std::vector<double> quick, exact;
  for (const TrainingPlan& plan : grid_plans(model, {"1f1b", "interleaved"})) {
    quick.push_back(iterations.quick_seconds(plan));
    exact.push_back(iterations.estimate(plan).seconds.value);
    EXPECT_GT(quick.back(), 0.97 * exact.back()) << plan.schedule << " on " << plan.stages() << " stages";
  }
  EXPECT_GT(quick.size(), 100U);
  EXPECT_GT(spearman(quick, exact), 0.99);
}

// What is kept must depend on nothing that is not part of its key.
TEST(IterationModel, says_the_same_of_a_plan_whatever_it_was_asked_before) {
  const auto machine = roofline_machine(8);
  for (const Model& model : grid_models()) {
    const TrainingJob job{.model = model, .sequence_length = grid_length};
    IterationModel kept(job, shipped_stack(), machine->machine());
    for (const TrainingPlan& plan : grid_plans(model, {"1f1b", "interleaved", "dualpipe"})) {
      const double quick = kept.quick_seconds(plan);
      IterationModel fresh(job, shipped_stack(), machine->machine());
      ASSERT_EQ(quick, fresh.quick_seconds(plan)) << model.name << " " << plan.schedule;
    }
  }
}

// A stack whose pipelines gather once a step: what is sharded there still divides the casts of the weights.
TEST(IterationModel, tells_shards_apart_that_no_micro_batch_gathers) {
  const auto machine = roofline_machine(8);
  const TrainingJob job{.model = step_test::llama_like(), .sequence_length = grid_length};
  IterationModel kept(job, shipped_stack("torchtitan"), machine->machine());
  const auto with = [](Sharding sharding, int64_t shard_ranks) {
    return TrainingPlan{
        .parallel = {.pipeline = 2, .data = 32}, .global_batch = 512, .sharding = sharding, .shard_ranks = shard_ranks};
  };
  for (const TrainingPlan& plan :
       {with(Sharding::none, 0), with(Sharding::parameters, 8), with(Sharding::parameters, 0)}) {
    IterationModel fresh(job, shipped_stack("torchtitan"), machine->machine());
    EXPECT_EQ(kept.quick_seconds(plan), fresh.quick_seconds(plan)) << plan.shard_ranks;
  }
}

TEST(IterationModel, forgets_times_of_other_constants) {
  const auto machine = roofline_machine(1);
  const TrainingPlan plan{.parallel = {.tensor = 2, .data = 4}, .global_batch = 8, .sharding = Sharding::parameters};
  IterationModel iterations({.model = step_test::llama_like()}, shipped_stack(), machine->machine());
  const double before = iterations.quick_seconds(plan);
  TrainingConstants constants = shipped_stack().constants_on(machine->device());
  constants[step_us] += 1e6;
  constants[gradient_bytes] *= 2;
  constants[linear_factor] *= 2;
  iterations.use_constants(constants);
  IterationModel fresh({.model = step_test::llama_like()}, shipped_stack(), machine->machine());
  fresh.use_constants(constants);
  EXPECT_GT(iterations.quick_seconds(plan), before + 1);
  EXPECT_EQ(iterations.quick_seconds(plan), fresh.quick_seconds(plan));
  EXPECT_EQ(iterations.estimate(plan).seconds.value, fresh.estimate(plan).seconds.value);
}

}  // namespace foretoken::quick_seconds_test
