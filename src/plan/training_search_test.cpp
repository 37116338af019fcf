#include "plan/training_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "model/step_test_models.h"
#include "plan/megatron_flags.h"
#include "training/layer_split.h"
#include "training/test_machine.h"

namespace foretoken::training_search_test {

using testing::HasSubstr;
using training_test::roofline_machine;
using training_test::shipped_stack;

constexpr int64_t searched_length = 4096;

TrainingSearch search_of(const Model& model, const MachineModels& machine, Bytes capacity) {
  return {.job = {.model = model, .sequence_length = searched_length},
          .stack = shipped_stack(),
          .machine = machine.machine(),
          .devices = 16,
          .global_batch = 64,
          .fast_domain = 8,
          .capacity = capacity,
          .best = 5};
}

struct ByHand {
  int64_t looked_at = 0, too_large = 0;
  std::vector<RankedPlan> fitting;
};

// Every plan, one after the other, each estimated in full.
ByHand by_hand(const TrainingSearch& search) {
  const PlanSpace space{.model = &search.job.model,
                        .sequence_length = search.job.sequence_length,
                        .devices = search.devices,
                        .global_batch = search.global_batch,
                        .fast_domain = search.fast_domain,
                        .layouts = balanced_layouts(search.job.model, searched_length, 1000)};
  IterationModel iterations(search.job, search.stack, search.machine);
  ByHand result;
  for (const RankSizes& sizes : rank_sizes(space)) {
    for (const TrainingPlan& pipeline : pipeline_plans(space, sizes)) {
      const ModelParts parts = training_parts(search.job.model, searched_length, pipeline, search.formats);
      for (const TrainingPlan& plan : memory_plans(space, pipeline)) {
        ++result.looked_at;
        const Bytes memory = plan_memory(parts, plan, search.formats, search.overheads).most().total();
        if (memory > search.overheads.usable * *search.capacity) {
          ++result.too_large;
          continue;
        }
        result.fitting.push_back({.plan = plan, .seconds = iterations.estimate(plan).seconds, .memory = memory});
      }
    }
  }
  return result;
}

auto group_of(const TrainingPlan& plan) {
  const ParallelPlan& p = plan.parallel;
  return std::tuple(p.tensor, p.context, p.expert, p.pipeline);
}

TEST(TrainingSearch, finds_what_estimating_every_plan_finds) {
  const auto machine = roofline_machine(2);
  for (const Model& model : {step_test::llama_like(), step_test::mixtral_like()}) {
    const TrainingSearch search = search_of(model, *machine, gibibytes(4));
    const TrainingSearchResult result = search_training_plans(search);
    const ByHand expected = by_hand(search);
    EXPECT_EQ(result.looked_at, expected.looked_at);
    EXPECT_EQ(result.too_large, expected.too_large);
    EXPECT_GT(result.too_large, 0);
    EXPECT_LT(result.estimated, expected.looked_at / 4);

    std::map<decltype(group_of(TrainingPlan{})), double> fastest;
    for (const RankedPlan& one : expected.fitting) {
      const auto [place, is_new] = fastest.emplace(group_of(one.plan), one.seconds.value);
      if (!is_new) place->second = std::min(place->second, one.seconds.value);
    }
    // Experts beyond a node must be 5% faster.
    std::vector<std::pair<double, double>> seconds;
    for (const auto& [group, least] : fastest) {
      seconds.emplace_back(least * (std::get<2>(group) > search.fast_domain ? 1.05 : 1), least);
    }
    std::sort(seconds.begin(), seconds.end());
    ASSERT_EQ(result.best.size(), search.best);
    for (size_t i = 0; i < search.best; ++i) {
      EXPECT_DOUBLE_EQ(result.best[i].seconds.value, seconds[i].second) << model.name;
    }

    // Nothing that fits is both smaller and faster than a plan of the frontier by more than formulas are off.
    for (const RankedPlan& edge : result.frontier) {
      for (const RankedPlan& one : expected.fitting) {
        EXPECT_FALSE(one.memory <= edge.memory && one.seconds.value < 0.95 * edge.seconds.value) << model.name;
      }
    }
  }
}

TEST(TrainingSearch, frontier_trades_time_for_memory_down_to_the_fastest) {
  const auto machine = roofline_machine(2);
  const TrainingSearchResult result =
      search_training_plans(search_of(step_test::llama_like(), *machine, gibibytes(80)));
  ASSERT_GT(result.frontier.size(), 1U);
  for (size_t i = 1; i < result.frontier.size(); ++i) {
    EXPECT_GT(result.frontier[i].memory, result.frontier[i - 1].memory);
    EXPECT_LT(result.frontier[i].seconds.value, result.frontier[i - 1].seconds.value);
  }
  EXPECT_GE(result.frontier.back().seconds.value, result.best.front().seconds.value);
}

TEST(TrainingSearch, says_the_same_on_any_number_of_threads) {
  const auto machine = roofline_machine(2);
  TrainingSearch search = search_of(step_test::mixtral_like(), *machine, gibibytes(4));
  const TrainingSearchResult alone = search_training_plans(search);
  search.threads = 3;
  const TrainingSearchResult together = search_training_plans(search);
  EXPECT_EQ(alone.looked_at, together.looked_at);
  EXPECT_EQ(alone.estimated, together.estimated);
  ASSERT_EQ(alone.best.size(), together.best.size());
  for (size_t i = 0; i < alone.best.size(); ++i) {
    EXPECT_EQ(alone.best[i].seconds.value, together.best[i].seconds.value);
    EXPECT_EQ(megatron_flags(alone.best[i].plan), megatron_flags(together.best[i].plan));
  }
  ASSERT_EQ(alone.frontier.size(), together.frontier.size());
  for (size_t i = 0; i < alone.frontier.size(); ++i) {
    EXPECT_EQ(megatron_flags(alone.frontier[i].plan), megatron_flags(together.frontier[i].plan));
  }
}

TEST(TrainingSearch, times_what_lies_in_host_memory_as_an_estimate_does) {
  const auto machine = roofline_machine(2);
  TrainingQuestion question{.job = {.model = step_test::llama_like(), .sequence_length = searched_length},
                            .devices = 16,
                            .stack = shipped_stack(),
                            .cluster = training_test::library_cluster(2),
                            .convention = &flop_conventions().front()};
  question.plan.global_batch = 64;
  question.formats.offloaded_optimizer = 0.5;
  question.formats.offloaded_activations = 1;
  const TrainingSearchResult result = plan_training(question, *machine, {.best = 5});
  ASSERT_GT(result.best.size(), 1U);
  double offload = 0;
  for (const std::vector<RankedPlan>& plans : {result.best, result.frontier}) {
    for (const RankedPlan& one : plans) {
      question.plan = one.plan;
      const IterationEstimate iteration = estimate_training(question, *machine).iteration;
      EXPECT_DOUBLE_EQ(one.seconds.value, iteration.seconds.value);
      EXPECT_DOUBLE_EQ(one.seconds.low, iteration.seconds.low);
      EXPECT_DOUBLE_EQ(one.seconds.high, iteration.seconds.high);
      EXPECT_DOUBLE_EQ(one.tokens_per_second_per_device, iteration.tokens_per_second_per_device);
      offload += training_test::part_of(iteration, TimePart::offload);
    }
  }
  EXPECT_GT(offload, 0);
  for (size_t i = 1; i < result.best.size(); ++i) {
    EXPECT_LE(result.best[i - 1].seconds.value, result.best[i].seconds.value);
  }
}

std::string complaint_of(const TrainingSearch& search) {
  try {
    search_training_plans(search);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(TrainingSearch, names_the_nearest_miss_where_nothing_fits) {
  const auto machine = roofline_machine(2);
  const std::string complaint = complaint_of(search_of(step_test::llama_like(), *machine, gibibytes(0.5)));
  EXPECT_THAT(complaint, HasSubstr("plans fits into"));
  EXPECT_THAT(complaint, HasSubstr("--tensor-model-parallel-size"));
}

TEST(TrainingSearch, says_so_where_no_plan_is_valid) {
  const auto machine = roofline_machine(2);
  TrainingSearch search = search_of(step_test::llama_like(), *machine, gibibytes(80));
  search.choices.tensor = 3;
  const std::string complaint = complaint_of(search);
  EXPECT_THAT(complaint, HasSubstr("no plan on 16 devices divides evenly"));
  EXPECT_THAT(complaint, HasSubstr("global_batch_size} 64, {tensor_model_parallel_size} 3"));
}

}  // namespace foretoken::training_search_test
