#include "training/pools/mixed_pools.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "base/error.h"
#include "model/catalogue.h"
#include "training/test_machine.h"

namespace foretoken::mixed_pools_test {

using training_test::library_cluster;
using training_test::plain_stack;
using training_test::roofline_machine;

const std::string fast = "h100_ib_rail", slow = "a100_ib_rail";

TrainingPool pool(const std::string& cluster, int64_t devices, const TrainingPlan& plan) {
  TrainingQuestion question{.job = {.model = ModelCatalogue(FORETOKEN_SOURCE_DIR "/data/models").model("Llama-3.1-8B")},
                            .plan = plan,
                            .devices = plan.devices(),
                            .stack = plain_stack(),
                            .cluster = library_cluster(static_cast<int>((plan.devices() + 7) / 8), cluster),
                            .convention = &flop_convention_named("model-3x-causal-half")};
  question.formats = usual_formats(question.job.recipe, question.job.lora, question.stack.attention);
  auto machine = roofline_machine(question.cluster);
  return {.question = std::move(question), .machine = std::move(machine), .devices = devices};
}

std::vector<TrainingPool> pools(const std::string& first, const std::string& second, const TrainingPlan& plan) {
  std::vector<TrainingPool> result;
  result.push_back(pool(first, plan.devices() / 2, plan));
  result.push_back(pool(second, plan.devices() / 2, plan));
  return result;
}

const TrainingPlan replicas{
    .parallel = {.tensor = 2, .data = 8}, .micro_batch = 1, .global_batch = 128, .sharding = Sharding::parameters};
const TrainingPlan stages{.parallel = {.tensor = 2, .pipeline = 4, .data = 2},
                          .micro_batch = 1,
                          .global_batch = 64,
                          .sharding = Sharding::optimizer};

double alone(const std::string& cluster, const TrainingPlan& plan) {
  const TrainingPool one = pool(cluster, plan.devices(), plan);
  return estimate_training(one.question, *one.machine).iteration.seconds.value;
}

TEST(MixedPools, two_pools_of_one_kind_are_one_pool) {
  const MixedEstimate data = estimate_mixed(pools(fast, fast, replicas), PoolAxis::data);
  EXPECT_NEAR(data.seconds.value, alone(fast, replicas), 1e-9);
  EXPECT_EQ(data.pools[0].micro_batches, 16);
  EXPECT_EQ(data.pools[1].micro_batches, 16);
  const MixedEstimate pipeline = estimate_mixed(pools(fast, fast, stages), PoolAxis::pipeline);
  EXPECT_LE(pipeline.seconds.value, alone(fast, stages) * (1 + 1e-6));
  EXPECT_NEAR(pipeline.even_seconds, alone(fast, stages), 1e-6);
  EXPECT_GT(pipeline.seconds.value, alone(fast, stages) * 0.8) << "the head weighs as much as some layers";
}

TEST(MixedPools, faster_replicas_take_more_micro_batches_and_all_of_the_batch_is_done) {
  const MixedEstimate mixed = estimate_mixed(pools(fast, slow, replicas), PoolAxis::data);
  EXPECT_GT(mixed.pools[0].micro_batches, 2 * mixed.pools[1].micro_batches) << "989 against 312 TFLOP/s";
  const int64_t done = 4 * (mixed.pools[0].micro_batches + mixed.pools[1].micro_batches);
  EXPECT_GE(done, 128);
  EXPECT_LT(done, 128 + 4);
  EXPECT_LT(mixed.seconds.value, 0.75 * mixed.even_seconds);
  EXPECT_GT(mixed.seconds.value, alone(fast, replicas));
  EXPECT_LT(mixed.seconds.value, alone(slow, replicas));
  EXPECT_LT(mixed.seconds.low, mixed.seconds.value);
  EXPECT_GT(mixed.seconds.high, mixed.seconds.value);
  EXPECT_EQ(mixed.seconds.kind, std::max(mixed.seconds.kind, Confidence::extrapolated));
}

TEST(MixedPools, faster_stages_hold_more_layers) {
  const MixedEstimate mixed = estimate_mixed(pools(fast, slow, stages), PoolAxis::pipeline);
  ASSERT_EQ(mixed.pools[0].layers.size(), 2u);
  ASSERT_EQ(mixed.pools[1].layers.size(), 2u);
  EXPECT_EQ(mixed.pools[1].first_stage, 2);
  const auto sum = [](const std::vector<int64_t>& layers) {
    return std::accumulate(layers.begin(), layers.end(), int64_t{0});
  };
  EXPECT_EQ(sum(mixed.pools[0].layers) + sum(mixed.pools[1].layers), 32);
  EXPECT_GT(sum(mixed.pools[0].layers), 2 * sum(mixed.pools[1].layers) - 4);
  EXPECT_LT(mixed.seconds.value, 0.8 * mixed.even_seconds);
  EXPECT_GT(mixed.seconds.value, estimate_mixed(pools(fast, fast, stages), PoolAxis::pipeline).seconds.value);
}

TEST(MixedPools, more_of_a_kind_is_never_slower) {
  TrainingPlan plan = replicas;
  double last = estimate_mixed(pools(fast, slow, plan), PoolAxis::data).seconds.value;
  for (const int64_t devices : {24, 32}) {
    plan.parallel.data = devices / 2;
    std::vector<TrainingPool> both;
    both.push_back(pool(fast, devices - 8, plan));
    both.push_back(pool(slow, 8, plan));
    const double now = estimate_mixed(both, PoolAxis::data).seconds.value;
    EXPECT_LT(now, last) << devices;
    last = now;
  }
}

TEST(MixedPools, memory_is_judged_for_each_kind) {
  TrainingPlan plan = replicas;
  plan.parallel.tensor = 1, plan.parallel.data = 16, plan.sharding = Sharding::none;
  const MixedEstimate mixed = estimate_mixed(pools(fast, "b200_ib_rail", plan), PoolAxis::data);
  EXPECT_EQ(mixed.pools[0].verdict, MemoryVerdict::too_large) << "145 GB of states on 80 GB";
  EXPECT_NE(mixed.pools[1].verdict, MemoryVerdict::too_large);
  EXPECT_FALSE(mixed.fits);
}

TEST(MixedPools, pools_without_whole_replicas_or_stages_are_refused) {
  std::vector<TrainingPool> odd;
  odd.push_back(pool(fast, 5, replicas));
  odd.push_back(pool(slow, 11, replicas));
  EXPECT_THROW(estimate_mixed(odd, PoolAxis::data), InputError);
  odd.clear();
  odd.push_back(pool(fast, 6, stages));
  odd.push_back(pool(slow, 10, stages));
  EXPECT_THROW(estimate_mixed(odd, PoolAxis::pipeline), InputError);
  TrainingPlan few = replicas;
  few.global_batch = 4;
  EXPECT_THROW(estimate_mixed(pools(fast, slow, few), PoolAxis::data), InputError) << "fewer than replicas";
}

}  // namespace foretoken::mixed_pools_test
