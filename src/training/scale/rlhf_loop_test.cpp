#include "training/scale/rlhf_loop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/random.h"

namespace foretoken::rlhf_loop_test {

// A 7B model on 16 GPUs, roughly.
RlhfPlan small_loop(std::string_view algorithm, RlhfPlacement placement, RlhfTiming timing) {
  return {.algorithm = *find_rlhf_algorithm(algorithm),
          .prompts = 512,
          .prompt_tokens = 300,
          .responses = {.mean = 2000, .sigma = 0.8, .most = 20000},
          .engine = {.devices = 2,
                     .most_sequences = 256,
                     .step_seconds = 0.012,
                     .sequence_seconds = 6e-5,
                     .prompt_token_seconds = 3e-5},
          .actor = {.forward_device_seconds = 4e-5, .training_device_seconds = 1.2e-4},
          .critic = {.forward_device_seconds = 4e-5, .training_device_seconds = 1.2e-4},
          .reference = {.forward_device_seconds = 4e-5},
          .reward = {.forward_device_seconds = 4e-5},
          .weight_bytes = 15e9,
          .switched_bytes_per_device = 20e9,
          .other_seconds = 10,
          .placement = placement,
          .timing = timing,
          .devices = 16};
}

RlhfPlan split_loop(RlhfTiming timing) {
  return small_loop("grpo", RlhfPlacement::split, timing);
}

TEST(RlhfLoop, parts_that_are_not_hidden_add_up) {
  for (const RlhfAlgorithm& algorithm : rlhf_algorithms()) {
    for (const RlhfPlan& plan : {small_loop(algorithm.name, RlhfPlacement::colocated, RlhfTiming::synchronous),
                                 small_loop(algorithm.name, RlhfPlacement::split, RlhfTiming::synchronous),
                                 small_loop(algorithm.name, RlhfPlacement::split, RlhfTiming::one_step_behind)}) {
      const RlhfIteration iteration = rlhf_iteration(plan);
      double sum = 0;
      for (const RlhfPart& part : iteration.parts) sum += part.hidden ? 0 : part.seconds;
      EXPECT_DOUBLE_EQ(sum, iteration.seconds);
      int64_t devices = 0;
      for (const RlhfPool& pool : iteration.pools) {
        devices += pool.devices;
        EXPECT_GT(pool.busy, 0);
        EXPECT_LE(pool.busy, 1);
      }
      EXPECT_EQ(devices, plan.devices);
    }
  }
}

TEST(RlhfLoop, one_step_behind_is_never_slower_than_waiting_with_the_same_pools) {
  for (int64_t rollout = 2; rollout < 16; rollout += 2) {
    const double waiting = rlhf_iteration(split_loop(RlhfTiming::synchronous), rollout).seconds;
    EXPECT_LE(rlhf_iteration(split_loop(RlhfTiming::one_step_behind), rollout).seconds, waiting);
  }
}

TEST(RlhfLoop, the_chosen_split_is_the_best_of_all) {
  for (const RlhfTiming timing : {RlhfTiming::synchronous, RlhfTiming::one_step_behind}) {
    const RlhfPlan plan = split_loop(timing);
    const double chosen = rlhf_iteration(plan).seconds;
    for (int64_t rollout = 2; rollout < 16; rollout += 2) EXPECT_LE(chosen, rlhf_iteration(plan, rollout).seconds);
  }
}

// Without tails, floors and switches all work divides over all devices: two pools that wait for each other lose.
TEST(RlhfLoop, colocation_is_best_when_everything_scales) {
  RlhfPlan plan = split_loop(RlhfTiming::synchronous);
  plan.engine.step_seconds = 0;
  plan.switched_bytes_per_device = 0;
  const double split = rlhf_iteration(plan).seconds;
  plan.placement = RlhfPlacement::colocated;
  EXPECT_LT(rlhf_iteration(plan).seconds, split);
}

TEST(RlhfLoop, grpo_runs_no_critic) {
  RlhfPlan plan = small_loop("grpo", RlhfPlacement::colocated, RlhfTiming::synchronous);
  const double before = rlhf_iteration(plan).seconds;
  plan.critic = {.forward_device_seconds = 1, .training_device_seconds = 1};
  EXPECT_EQ(rlhf_iteration(plan).seconds, before);
  plan.algorithm.critic = true;
  EXPECT_GT(rlhf_iteration(plan).seconds, before);
}

TEST(RlhfLoop, longer_tails_keep_everyone_waiting) {
  RlhfPlan plan = small_loop("ppo", RlhfPlacement::colocated, RlhfTiming::synchronous);
  double longest = 0, seconds = 0;
  for (const double sigma : {0.0, 0.3, 0.6, 0.9}) {
    plan.responses = {.mean = 1000, .sigma = sigma};
    const RlhfIteration iteration = rlhf_iteration(plan);
    EXPECT_NEAR(iteration.response_tokens, 512 * 1000, 512 * 1000 * 1e-6);
    EXPECT_GT(iteration.longest_response, longest);
    EXPECT_GT(iteration.seconds, seconds);
    longest = iteration.longest_response;
    seconds = iteration.seconds;
  }
  plan.responses.most = 2000;
  EXPECT_LT(rlhf_iteration(plan).longest_response, 2000.01);
}

TEST(RlhfLoop, expected_answers_are_the_means_of_drawn_ones) {
  const ResponseLengths lengths{.mean = 800, .sigma = 0.7, .most = 6000};
  RandomStream stream(3, "responses");
  constexpr int batches = 2000, responses = 64;
  double sum = 0, squares = 0, all = 0;
  for (int batch = 0; batch < batches; ++batch) {
    double longest = 0;
    for (int i = 0; i < responses; ++i) {
      const double drawn =
          stream.lognormal(std::log(lengths.mean) - 0.5 * lengths.sigma * lengths.sigma, lengths.sigma);
      longest = std::max(longest, std::min(lengths.most, drawn));
      all += std::min(lengths.most, drawn);
    }
    sum += longest;
    squares += longest * longest;
  }
  const double mean = sum / batches;
  const double error = std::sqrt((squares / batches - mean * mean) / batches);
  EXPECT_NEAR(lengths.mean_longest_of(responses), mean, 4 * error);
  EXPECT_NEAR(lengths.mean_tokens(), all / (batches * responses), 0.01 * lengths.mean);
}

// One engine, all answers at once: step by step, each as long as its sequences make it.
TEST(RlhfLoop, generation_adds_up_the_steps_of_a_draining_batch) {
  RlhfPlan plan = split_loop(RlhfTiming::synchronous);
  plan.responses = {.mean = 500, .sigma = 0};
  plan.prompts = 4;
  plan.algorithm.samples_per_prompt = 8;
  const double step = plan.engine.step_seconds + 32 * plan.engine.sequence_seconds;
  const double prompts = 4 * plan.prompt_tokens * plan.engine.prompt_token_seconds;
  EXPECT_NEAR(rollout_seconds(plan, 2), 500 * step + prompts, 1e-9);
  // More answers than slots: one after the other.
  plan.engine.most_sequences = 16;
  EXPECT_NEAR(rollout_seconds(plan, 2), 1000 * (plan.engine.step_seconds + 16 * plan.engine.sequence_seconds) + prompts,
              1e-9);
}

TEST(RlhfLoop, more_rollout_devices_never_generate_slower_and_never_beat_the_longest_answer) {
  const RlhfPlan plan = split_loop(RlhfTiming::synchronous);
  double before = 1e30;
  for (int64_t devices = 2; devices <= 512; devices *= 2) {
    const double seconds = rollout_seconds(plan, devices);
    EXPECT_LE(seconds, before);
    EXPECT_GT(seconds, plan.responses.mean_tokens() * plan.engine.step_seconds);
    before = seconds;
  }
}

TEST(RlhfLoop, plans_that_cannot_run_are_refused) {
  EXPECT_THROW(rlhf_iteration(small_loop("ppo", RlhfPlacement::colocated, RlhfTiming::one_step_behind)), InputError);
  EXPECT_THROW(rlhf_iteration(split_loop(RlhfTiming::synchronous), 3), InputError);
  EXPECT_THROW(rlhf_iteration(split_loop(RlhfTiming::synchronous), 16), InputError);
  EXPECT_EQ(find_rlhf_algorithm("pppo"), nullptr);
}

TEST(RlhfLoop, squares_of_answers_and_the_share_that_is_cut_are_those_of_drawn_ones) {
  const ResponseLengths lengths{.mean = 1500, .sigma = 0.8, .most = 4000};
  RandomStream stream(7, "answers");
  double squares = 0, cut = 0;
  constexpr int drawn = 200'000;
  for (int i = 0; i < drawn; ++i) {
    const double length = stream.lognormal(std::log(1500.0) - 0.32, 0.8);
    squares += std::min(length, 4000.0) * std::min(length, 4000.0);
    if (length > 4000) ++cut;
  }
  EXPECT_NEAR(lengths.mean_square_tokens(), squares / drawn, 0.01 * squares / drawn);
  EXPECT_NEAR(lengths.cut_share(), cut / drawn, 0.003);
  const ResponseLengths equal{.mean = 300, .sigma = 0, .most = 200};
  EXPECT_EQ(equal.mean_square_tokens(), 200 * 200);
  EXPECT_EQ(equal.cut_share(), 1);
}

TEST(RlhfLoop, lengths_of_sequences_are_of_prompt_and_answer) {
  RlhfPlan plan = split_loop(RlhfTiming::synchronous);
  plan.responses = {.mean = 1000, .sigma = 0};
  EXPECT_DOUBLE_EQ(plan.sequence_tokens(), 1300);
  EXPECT_DOUBLE_EQ(plan.longest_sequence(), 1300);
  EXPECT_DOUBLE_EQ(plan.context_tokens(), 800);
  EXPECT_DOUBLE_EQ(plan.cached_tokens(), 500 + 300.0 / 16) << "the answers to a prompt share its tokens";
  plan.responses.sigma = 0.8;
  EXPECT_GT(plan.sequence_tokens(), 1300) << "most tokens are in long answers";
}

TEST(RlhfLoop, a_split_leaves_whole_replicas_and_enough_devices_to_train) {
  RlhfPlan plan = split_loop(RlhfTiming::one_step_behind);
  plan.trainer_unit = 4;
  EXPECT_EQ((plan.devices - best_rollout_devices(plan)) % 4, 0);
  EXPECT_THROW(rlhf_iteration(plan, 6), InputError);
  plan.least_trainers = 12;
  EXPECT_EQ(best_rollout_devices(plan), 4);
  plan.trainer_unit = 16;
  EXPECT_THROW(best_rollout_devices(plan), InputError);
}

}  // namespace foretoken::rlhf_loop_test
