#include "serving/steps/sustained_steps.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "hardware/catalogue.h"
#include "model/catalogue.h"
#include "serving/test_support.h"

namespace foretoken::sustained_steps_test {

const std::filesystem::path library = FORETOKEN_SOURCE_DIR "/data";

class SustainedStepsOf : public testing::Test {
 protected:
  static std::unique_ptr<StepTimes> held(const char* name) {
    const Device device = HardwareCatalogue(library / "hardware").device(name);
    const ComposedStepsConfig config{
        .model = ModelCatalogue(library / "models").model("Llama-3.1-8B"),
        .plan = {},
        .models = {KernelPredictor(device, {}, nullptr), nullptr,
                   PowerModel::make(device, read_power_calibrations(library / "kernels/power.json"))},
        .stack = StackCatalogue(library / "stacks").stack("vllm")};
    return sustained_steps(std::make_unique<LinearTimes>(LinearTimes::Costs{}),
                           std::make_shared<SustainedGrid>(config));
  }
  static double slowdown(StepTimes& times, const StepBatch& batch) {
    return times.step_seconds(batch).value / LinearTimes(LinearTimes::Costs{}).step_seconds(batch).value;
  }
  std::vector<PromptChunk> prompt = {{.new_tokens = 2000}};
};

TEST_F(SustainedStepsOf, a_prompt_meets_the_power_limit_and_a_few_decodes_do_not) {
  const auto times = held("rtx_pro_6000_server");
  EXPECT_GT(slowdown(*times, {.prompts = prompt}), 1.01);
  const StepBatch few{.decodes = 4, .decode_context_tokens = 4000, .longest_decode_context = 1000, .prompts = {}};
  EXPECT_DOUBLE_EQ(slowdown(*times, few), 1);
}

TEST_F(SustainedStepsOf, intervals_reach_from_no_slowdown_to_twice_as_much) {
  const auto times = held("rtx_pro_6000_server");
  const StepBatch batch{.decodes = 8, .decode_context_tokens = 8000, .longest_decode_context = 1500, .prompts = prompt};
  const double cool = LinearTimes(LinearTimes::Costs{}).step_seconds(batch).value;
  const Estimate step = times->step_seconds(batch);
  EXPECT_NEAR(step.low, cool, 1e-12);
  EXPECT_NEAR(step.high - step.value, step.value - cool, 1e-9 * cool);
}

}  // namespace foretoken::sustained_steps_test
