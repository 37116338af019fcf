#include "serving/colocation/composed_demands.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/error.h"
#include "hardware/catalogue.h"
#include "kernel/learned.h"
#include "model/catalogue.h"
#include "serving/tiers/host_link.h"

namespace foretoken::composed_demands_test {

const std::filesystem::path data = FORETOKEN_SOURCE_DIR "/data";

Device device() {
  return HardwareCatalogue(data / "hardware").device("h200_sxm");
}

std::unique_ptr<StepDemands> demands() {
  return composed_demands(
      {.model = ModelCatalogue(data / "models").model("Llama-3.1-8B"),
       .plan = {},
       .models = {KernelPredictor(device(), {},
                                  std::make_shared<LearnedKernels>(device(), data / "kernels" / "calibrations")),
                  nullptr},
       .stack = StackCatalogue(data / "stacks").stack("vllm")});
}

StepBatch decodes(int64_t count) {
  return {.decodes = count, .decode_context_tokens = count * 1000, .longest_decode_context = 1000};
}

TEST(StepDemands, decodes_hold_the_memory_and_prompts_the_multiply_units) {
  const auto of = demands();
  const StepDemand decode = of->of(decodes(16));
  EXPECT_GT(decode.memory, 0.7);
  EXPECT_LT(decode.compute, 0.2);
  const PromptChunk prompt{.new_tokens = 4096};
  const StepDemand prefill = of->of({.prompts = {&prompt, 1}});
  EXPECT_GT(prefill.compute, 0.8);
  EXPECT_LT(prefill.memory, 0.5);
}

TEST(StepDemands, are_shares_of_the_time_that_kernels_run) {
  const auto of = demands();
  for (const int64_t count : {1, 3, 40, 300}) {
    for (const int64_t tokens : {0, 10, 700, 5000}) {
      const PromptChunk prompt{.new_tokens = tokens};
      StepBatch batch = decodes(count);
      if (tokens > 0) batch.prompts = {&prompt, 1};
      const StepDemand demand = of->of(batch);
      EXPECT_GE(std::min(demand.compute, demand.memory), 0);
      EXPECT_LE(std::max(demand.compute, demand.memory), demand.busy + 1e-12);
      EXPECT_LE(demand.busy, 1 + 1e-12);
      EXPECT_GE(demand.compute + demand.memory, demand.busy - 1e-12) << "every kernel is bound by one of them";
    }
  }
}

TEST(HostLink, is_slower_than_the_sheet_and_must_be_known) {
  Device known = device();
  EXPECT_NEAR(host_copy_bandwidth(known, "enable_lora") / known.host_bandwidth->value, 0.86, 1e-9);
  known.host_bandwidth.reset();
  EXPECT_THROW(host_copy_bandwidth(known, "enable_lora"), InputError);
}

}  // namespace foretoken::composed_demands_test
