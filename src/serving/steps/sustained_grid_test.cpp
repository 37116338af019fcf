#include "serving/steps/sustained_grid.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "compose/step_estimate.h"
#include "compose/sustained_step.h"
#include "hardware/catalogue.h"
#include "model/catalogue.h"

namespace foretoken::sustained_grid_test {

const std::filesystem::path library = FORETOKEN_SOURCE_DIR "/data";

ComposedStepsConfig config_of(const PowerCaps& caps = {}, const ParallelPlan& plan = {}) {
  const Device device = HardwareCatalogue(library / "hardware").device("h200_sxm");
  const auto calibrations = read_power_calibrations(library / "kernels/power.json");
  return {
      .model = ModelCatalogue(library / "models").model("Llama-3.1-8B"),
      .plan = plan,
      .models = {KernelPredictor(device, {}, nullptr), nullptr, PowerModel::make(device, calibrations)->capped(caps)},
      .stack = StackCatalogue(library / "stacks").stack("vllm")};
}

TEST(SustainedGrid, at_a_node_it_is_the_step_itself) {
  const ComposedStepsConfig config = config_of();
  SustainedGrid grid(config);
  const StepEstimate step = estimate_step(config.model, {.phase = StepPhase::decode, .batch = 64, .context_len = 1024},
                                          config.plan, config.models.kernels, config.stack);
  const SustainedStep held = sustained_step(step, *config.models.power, config.models.kernels.device());
  EXPECT_DOUBLE_EQ(grid.watts_above_idle({.decodes = 64, .mean_context = 1024}).value, held.above_idle.value);
  EXPECT_DOUBLE_EQ(grid.slowdown({.decodes = 64, .mean_context = 1024}).value, held.power.slowdown.value);
}

TEST(SustainedGrid, a_coarse_grid_is_within_three_percent_of_the_fine_one) {
  SustainedGrid fine(config_of()), coarse(config_of(), SustainedGrid::Spacing::coarse);
  for (const double decodes : {3.0, 11.0, 23.0, 90.0, 190.0}) {
    for (const double prompt_tokens : {0.0, 300.0, 1400.0}) {
      const SustainedGrid::Step step{.prompt_tokens = prompt_tokens, .decodes = decodes, .mean_context = 700};
      const double watts = fine.watts_above_idle(step).value;
      EXPECT_NEAR(coarse.watts_above_idle(step).value, watts, 0.03 * watts) << decodes << " " << prompt_tokens;
    }
  }
}

TEST(SustainedGrid, nothing_draws_nothing_beyond_idle) {
  SustainedGrid grid(config_of());
  EXPECT_EQ(grid.watts_above_idle({}).value, 0);
  EXPECT_EQ(grid.slowdown({}).value, 1);
}

TEST(SustainedGrid, a_token_takes_less_energy_in_a_larger_batch) {
  const ComposedStepsConfig config = config_of();
  SustainedGrid grid(config);
  const std::unique_ptr<StepTimes> times = compose_steps(config);
  double joules_before = 1e9;
  for (const int64_t decodes : {1, 2, 8, 32, 128}) {
    const StepBatch batch{
        .decodes = decodes, .decode_context_tokens = 512 * decodes, .longest_decode_context = 512, .prompts = {}};
    const SustainedGrid::Step step{.decodes = static_cast<double>(decodes), .mean_context = 512};
    const double watts = config.models.power->idle_watts() + grid.watts_above_idle(step).value;
    const double joules =
        watts * times->step_seconds(batch).value * grid.slowdown(step).value / static_cast<double>(decodes);
    EXPECT_LT(joules, joules_before) << decodes;
    joules_before = joules;
  }
}

TEST(SustainedGrid, capped_boards_draw_less_and_are_never_faster) {
  SustainedGrid plain(config_of()), limited(config_of({.limit_watts = 350, .clock_hertz = {}})),
      slow(config_of({.limit_watts = {}, .clock_hertz = 1e9}));
  const SustainedGrid::Step steps[] = {{.prompt_tokens = 4096},
                                       {.decodes = 32, .mean_context = 1500},
                                       {.prompt_tokens = 1000, .decodes = 100, .mean_context = 700}};
  for (const SustainedGrid::Step& step : steps) {
    for (SustainedGrid* capped : {&limited, &slow}) {
      EXPECT_GE(capped->slowdown(step).value, plain.slowdown(step).value);
      EXPECT_LE(capped->watts_above_idle(step).value, plain.watts_above_idle(step).value);
    }
  }
  EXPECT_GT(limited.slowdown(steps[0]).value, 1.2);
  EXPECT_GT(slow.slowdown(steps[0]).value, slow.slowdown(steps[1]).value) << "decodes wait for memory";
}

TEST(SustainedGrid, a_capped_clock_is_surer_than_a_power_limit) {
  SustainedGrid plain(config_of()), slow(config_of({.limit_watts = {}, .clock_hertz = 1e9}));
  const SustainedGrid::Step prompt{.prompt_tokens = 4096};
  EXPECT_EQ(plain.slowdown(prompt).low, 1);
  EXPECT_GT(plain.slowdown(prompt).value, 1.01);
  EXPECT_GT(slow.slowdown(prompt).low, 1.3);
}

TEST(SustainedGrid, a_step_takes_the_same_energy_beyond_idle_on_one_board_and_on_two_in_turn) {
  const StepBatch batch{
      .decodes = 32, .decode_context_tokens = 32 * 1024, .longest_decode_context = 1024, .prompts = {}};
  const auto joules = [&](const ParallelPlan& plan) {
    const ComposedStepsConfig config = config_of({}, plan);
    return SustainedGrid(config).watts_above_idle({.decodes = 32, .mean_context = 1024}).value *
           compose_steps(config)->step_seconds(batch).value;
  };
  EXPECT_NEAR(joules({.pipeline = 2}), joules({}), 0.02 * joules({}));
}

}  // namespace foretoken::sustained_grid_test
