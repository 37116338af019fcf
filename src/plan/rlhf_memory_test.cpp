#include "plan/rlhf_memory.h"

#include <gtest/gtest.h>

#include "base/units.h"
#include "library/library.h"
#include "training/estimate/training_spec.h"

namespace foretoken::rlhf_memory_test {

TrainingQuestion small_question(int64_t devices) {
  const Library library(FORETOKEN_SOURCE_DIR "/data");
  TrainingSpec spec{
      .job = {.model = library.models().model("Llama-3.1-8B")}, .cluster = "h100_ib_rail", .devices = devices};
  TrainingQuestion question = open_training(library, spec);
  question.plan = {.parallel = {.data = devices}, .global_batch = devices, .sharding = Sharding::parameters};
  return question;
}

TEST(RlhfMemory, fewer_trainers_hold_more_each_and_the_fewest_that_fit_are_found) {
  const TrainingQuestion question = small_question(64);
  const RlhfAlgorithm& grpo = *find_rlhf_algorithm("grpo");
  EXPECT_GT(trainer_memory(question, grpo, 8, 4096).total(), trainer_memory(question, grpo, 16, 4096).total());
  const std::optional<int64_t> least = least_trainers(question, grpo, 64, 4096);
  ASSERT_TRUE(least.has_value());
  EXPECT_TRUE(trainer_memory(question, grpo, *least, 4096).fits());
  EXPECT_FALSE(trainer_memory(question, grpo, *least - 1, 4096).fits());
  EXPECT_FALSE(least_trainers(question, grpo, *least - 1, 4096).has_value());
}

TEST(RlhfMemory, a_critic_is_a_second_model_in_training_and_others_are_weights) {
  const TrainingQuestion question = small_question(16);
  const TrainerMemory ppo = trainer_memory(question, *find_rlhf_algorithm("ppo"), 16, 2048);
  const TrainingMemory& actor = ppo.actor;
  EXPECT_DOUBLE_EQ(ppo.others.value(), (2 * actor.parameters + actor.states()).value());
  EXPECT_DOUBLE_EQ(ppo.switched.value(), 2 * (actor.gradients + actor.optimizer).value());
}

TEST(RlhfMemory, what_trains_beside_an_engine_leaves_it_fewer_answers_at_once) {
  const Library library(FORETOKEN_SOURCE_DIR "/data");
  const Model model = library.models().model("Llama-3.1-8B");
  const Device device = library.hardware().device("h100_sxm");
  RlhfPlan plan{.algorithm = *find_rlhf_algorithm("grpo"), .responses = {.mean = 2000, .sigma = 0}};
  const EngineRequest alone{.stack = "vllm", .longest_sequence = 4096};
  EngineRequest beside = alone;
  beside.taken = gigabytes(40);
  const auto in_flight = [&](const EngineRequest& request) {
    return sequences_in_flight(engine_memory(model, device, request), plan, 10'000);
  };
  EXPECT_LT(in_flight(beside), in_flight(alone) / 2);
  beside.taken = gigabytes(75);
  EXPECT_FALSE(engine_memory(model, device, beside).starts);
}

TEST(RlhfMemory, trainers_come_in_whole_copies_of_the_model) {
  TrainingPlan plan{.parallel = {.tensor = 2, .pipeline = 4, .expert = 8}};
  EXPECT_EQ(trainer_unit(plan), 32);
  plan.parallel.expert = 2;
  EXPECT_EQ(trainer_unit(plan), 8);
  EXPECT_EQ(divisible_length(plan, 4097.2), 4100);
}

}  // namespace foretoken::rlhf_memory_test
