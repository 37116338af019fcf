#include "plan/plan_space.h"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "model/step_test_models.h"
#include "training/layer_split.h"

namespace foretoken::plan_space_test {

using step_test::llama_like;
using step_test::mixtral_like;

std::vector<TrainingPlan> all_plans(const PlanSpace& space) {
  std::vector<TrainingPlan> plans;
  for (const RankSizes& sizes : rank_sizes(space)) {
    for (const TrainingPlan& pipeline : pipeline_plans(space, sizes)) {
      for (TrainingPlan& plan : memory_plans(space, pipeline)) plans.push_back(std::move(plan));
    }
  }
  return plans;
}

auto identity(const TrainingPlan& plan) {
  const ParallelPlan& p = plan.parallel;
  return std::tuple(p.tensor, p.context, p.expert, p.pipeline, p.data, plan.micro_batch, plan.schedule,
                    plan.virtual_stages, plan.embedding_in_split, plan.loss_in_split, plan.sharding, plan.recompute,
                    plan.recompute_layers, plan.shard_ranks);
}

TEST(PlanSpace, has_valid_plans_on_all_devices_each_once) {
  for (const Model& model : {llama_like(), mixtral_like()}) {
    for (const int64_t devices : {1, 12, 64}) {
      const PlanSpace space{.model = &model,
                            .sequence_length = 4096,
                            .devices = devices,
                            .global_batch = 48,
                            .fast_domain = 8,
                            .keeps_scores = true};
      std::set<decltype(identity(TrainingPlan{}))> seen;
      for (const TrainingPlan& plan : all_plans(space)) {
        EXPECT_TRUE(is_valid_plan(model, 4096, plan, devices));
        EXPECT_EQ(plan.devices(), devices);
        EXPECT_LE(plan.parallel.tensor, 8);
        EXPECT_TRUE(seen.insert(identity(plan)).second) << "a plan comes twice";
      }
      EXPECT_FALSE(seen.empty());
    }
  }
}

TEST(PlanSpace, tries_every_size_and_kind) {
  const Model model = mixtral_like();
  const PlanSpace space{.model = &model,
                        .sequence_length = 4096,
                        .devices = 64,
                        .global_batch = 256,
                        .fast_domain = 8,
                        .keeps_scores = true};
  std::set<int64_t> tensor, context, expert, pipeline, virtual_stages, micro_batch;
  std::set<Sharding> shardings;
  std::set<Recompute> recomputes;
  for (const TrainingPlan& plan : all_plans(space)) {
    tensor.insert(plan.parallel.tensor);
    context.insert(plan.parallel.context);
    expert.insert(plan.parallel.expert);
    pipeline.insert(plan.parallel.pipeline);
    virtual_stages.insert(plan.virtual_stages);
    micro_batch.insert(plan.micro_batch);
    shardings.insert(plan.sharding);
    recomputes.insert(plan.recompute);
    EXPECT_TRUE(plan.sharding != Sharding::parameters || plan.stages() == 1);
  }
  EXPECT_EQ(tensor, (std::set<int64_t>{1, 2, 4, 8}));
  EXPECT_EQ(context, (std::set<int64_t>{1, 2, 4}));
  EXPECT_EQ(expert, (std::set<int64_t>{1, 2, 4, 8}));
  EXPECT_EQ(pipeline, (std::set<int64_t>{1, 2, 4}));  // 6 layers, or 8 with embedding and loss
  EXPECT_EQ(virtual_stages, (std::set<int64_t>{1, 2, 3, 4}));
  EXPECT_EQ(micro_batch, (std::set<int64_t>{1, 2, 4, 8, 16}));
  EXPECT_EQ(shardings, (std::set<Sharding>{Sharding::none, Sharding::optimizer, Sharding::parameters}));
  EXPECT_EQ(recomputes, (std::set<Recompute>{Recompute::none, Recompute::selective, Recompute::full}));
}

TEST(PlanSpace, keeps_to_what_is_fixed) {
  const Model model = mixtral_like();
  const PlanSpace space{.model = &model,
                        .sequence_length = 4096,
                        .devices = 64,
                        .global_batch = 256,
                        .fast_domain = 8,
                        .choices = {.tensor = 2,
                                    .pipeline = 2,
                                    .context = 2,
                                    .expert = 4,
                                    .virtual_stages = 3,
                                    .micro_batch = 4,
                                    .shardings = {Sharding::gradients},
                                    .recomputes = {Recompute::selective}}};
  const std::vector<TrainingPlan> plans = all_plans(space);
  ASSERT_EQ(plans.size(), 1U);
  EXPECT_EQ(identity(plans.front()),
            identity({.parallel = {.tensor = 2, .pipeline = 2, .data = 8, .expert = 4, .context = 2},
                      .micro_batch = 4,
                      .schedule = "interleaved",
                      .virtual_stages = 3,
                      .sharding = Sharding::gradients,
                      .recompute = Recompute::selective}));
}

TEST(PlanSpace, recomputes_cheap_modules_where_a_flash_kernel_has_no_scores_to_spare) {
  const Model model = llama_like();
  PlanSpace space{.model = &model, .sequence_length = 4096, .devices = 8, .global_batch = 8, .fast_domain = 8};
  for (const bool keeps_scores : {false, true}) {
    space.keeps_scores = keeps_scores;
    size_t selective = 0;
    for (const TrainingPlan& plan : all_plans(space)) {
      if (plan.recompute != Recompute::selective) continue;
      ++selective;
      EXPECT_EQ(plan.recompute_modules, keeps_scores ? LayerModules{LayerModule::core_attn} : cheap_modules(model));
    }
    EXPECT_GT(selective, 0U);
  }
}

TEST(PlanSpace, cuts_any_number_of_layers_into_stages) {
  Model model = llama_like();
  model.layers.assign(61, model.layers.front());
  PlanSpace space{.model = &model,
                  .sequence_length = 4096,
                  .devices = 8,
                  .global_batch = 32,
                  .fast_domain = 8,
                  .choices = {.pipeline = 4, .virtual_stages = 1}};
  space.layouts = balanced_layouts(model, space.sequence_length, 63);
  const std::vector<TrainingPlan> plans = all_plans(space);
  ASSERT_FALSE(plans.empty());
  for (const TrainingPlan& plan : plans) {
    EXPECT_EQ(plan.layout.size(), 4U);
    EXPECT_TRUE(is_valid_plan(model, space.sequence_length, plan, space.devices));
  }
}

TEST(PlanSpace, parameters_are_sharded_beside_stages_where_the_stack_gathers_them_once) {
  const Model model = step_test::llama_like();
  PlanSpace space{.model = &model, .devices = 32, .global_batch = 32, .fast_domain = 8};
  const TrainingPlan plan{.parallel = {.tensor = 2, .pipeline = 2, .data = 8}, .global_batch = 32};
  const auto shards = [&] {
    const std::vector<TrainingPlan> plans = memory_plans(space, plan);
    return std::any_of(plans.begin(), plans.end(),
                       [](const TrainingPlan& one) { return one.sharding == Sharding::parameters; });
  };
  EXPECT_FALSE(shards());
  space.shards_pipelines = true;
  EXPECT_TRUE(shards());
}

TEST(PlanSpace, parameters_are_also_sharded_inside_each_node) {
  const Model model = step_test::llama_like();
  const PlanSpace space{.model = &model, .devices = 32, .global_batch = 32, .fast_domain = 8};
  const TrainingPlan plan{.parallel = {.tensor = 2, .data = 16}, .global_batch = 32};
  std::set<int64_t> ranks;
  for (const TrainingPlan& one : memory_plans(space, plan)) {
    if (one.sharding == Sharding::parameters) {
      ranks.insert(one.shard_ranks);
    } else {
      EXPECT_EQ(one.shard_ranks, 0);
    }
  }
  EXPECT_EQ(ranks, (std::set<int64_t>{0, 4}));
}

TEST(PlanSpace, stages_run_the_schedules_of_the_stack) {
  const Model model = step_test::llama_like();
  PlanSpace space{.model = &model, .devices = 4, .global_batch = 32, .fast_domain = 8};
  space.schedules = {"zb-h1"};
  space.choices.pipeline = 2;
  std::set<std::string> schedules;
  for (const TrainingPlan& one : pipeline_plans(space, {})) schedules.insert(one.schedule);
  EXPECT_EQ(schedules, std::set<std::string>{"zb-h1"});
}

TEST(PlanSpace, shards_and_recomputes_what_the_stack_can) {
  const Model model = llama_like();
  PlanSpace space{.model = &model, .sequence_length = 4096, .devices = 8, .global_batch = 8, .fast_domain = 8};
  space.shardings = {Sharding::none, Sharding::gradients};
  space.recomputes = {Recompute::op};
  std::set<Sharding> shardings;
  for (const TrainingPlan& plan : all_plans(space)) {
    shardings.insert(plan.sharding);
    EXPECT_EQ(plan.recompute, Recompute::op);
  }
  EXPECT_EQ(shardings, (std::set<Sharding>{Sharding::none, Sharding::gradients}));
}

}  // namespace foretoken::plan_space_test
