#include "compose/sustained_step.h"

#include <gtest/gtest.h>

#include "hardware/catalogue.h"
#include "model/catalogue.h"

namespace foretoken::sustained_step_test {

const std::filesystem::path data = FORETOKEN_SOURCE_DIR "/data";

SustainedStep held(const StepRequest& request, const char* stack_name) {
  const Device device = HardwareCatalogue(data / "hardware").device("h200_sxm");
  const KernelPredictor kernels(device, {},
                                std::make_shared<LearnedKernels>(device, data / "kernels" / "calibrations"));
  const Model model = ModelCatalogue(data / "models").model("Llama-3.1-8B");
  const Stack stack = StackCatalogue(data / "stacks").stack(stack_name);
  const StepEstimate step = estimate_step(model, request, {}, kernels, stack);
  const auto calibrations = read_power_calibrations(data / "kernels" / "power.json");
  const SustainedStep result = sustained_step(step, *PowerModel::make(device, calibrations), device);
  EXPECT_GE(result.seconds.value, step.seconds.value) << "a hot board is never faster";
  EXPECT_NEAR(result.joules, result.power.watts.value * result.seconds.value, 0.02 * result.joules);
  EXPECT_NEAR(result.above_idle.value, result.power.watts.value - calibrations.front().idle_watts, 1e-6);
  return result;
}

TEST(SustainedStep, a_long_prefill_meets_the_power_limit_and_a_small_decode_does_not) {
  const SustainedStep prefill = held({.phase = StepPhase::prefill, .input_len = 4096}, "torch-graph");
  const SustainedStep decode = held({.phase = StepPhase::decode, .context_len = 512}, "torch-graph");
  EXPECT_TRUE(prefill.power.limited);
  EXPECT_LT(prefill.power.clock_share, 1);
  EXPECT_FALSE(decode.power.limited);
  EXPECT_LT(decode.power.watts.value, prefill.power.watts.value);
}

TEST(SustainedStep, waiting_for_the_host_saves_power) {
  const StepRequest request{.phase = StepPhase::decode, .batch = 4, .context_len = 512};
  EXPECT_LT(held(request, "hf-eager").power.watts.value, held(request, "torch-graph").power.watts.value);
}

}  // namespace foretoken::sustained_step_test
