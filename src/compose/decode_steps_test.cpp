#include "compose/decode_steps.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "hardware/catalogue.h"
#include "model/catalogue.h"

namespace foretoken::decode_steps_test {

const std::filesystem::path data = FORETOKEN_SOURCE_DIR "/data";

KernelPredictor predictor() {
  const Device device = HardwareCatalogue(data / "hardware").device("h200_sxm");
  return KernelPredictor(device, {}, std::make_shared<LearnedKernels>(device, data / "kernels" / "calibrations"));
}

TEST(DecodeSteps, give_what_estimate_step_gives_for_any_batch_and_context) {
  const KernelPredictor kernels = predictor();
  RandomStream random(3, "decode steps");
  for (const char* name : {"Llama-3.1-8B", "gpt2-large", "DeepSeek-V2-Lite", "gemma-2-2b"}) {
    const Model model = ModelCatalogue(data / "models").model(name);
    for (const char* stack_name : {"vllm", "torch-graph", "fused"}) {
      const Stack stack = StackCatalogue(data / "stacks").stack(stack_name);
      DecodeSteps steps(model, {}, kernels, stack);
      for (int i = 0; i < 12; ++i) {
        const auto batch = static_cast<int64_t>(1 + random.below(256));
        const auto context = static_cast<int64_t>(1 + random.below(900));
        const StepRequest request{
            .phase = StepPhase::decode, .batch = batch, .context_len = context, .kv_dtype = model.dtype};
        const Estimate slow = estimate_step(model, request, {}, kernels, stack).seconds;
        const Estimate fast = steps.seconds(batch, context);
        EXPECT_NEAR(fast.value / slow.value, 1, 1e-9) << name << " " << stack_name << " " << batch << " " << context;
        EXPECT_NEAR(fast.low / slow.low, 1, 1e-9);
        EXPECT_NEAR(fast.high / slow.high, 1, 1e-9);
      }
    }
  }
}

}  // namespace foretoken::decode_steps_test
