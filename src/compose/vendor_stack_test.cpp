#include "compose/vendor_stack.h"

#include <gtest/gtest.h>

#include "compose/stack.h"
#include "hardware/catalogue.h"

namespace foretoken::vendor_stack_test {

TEST(VendorStack, engines_have_stacks_of_their_own_on_amds_gpus) {
  const HardwareCatalogue hardware(FORETOKEN_SOURCE_DIR "/data/hardware");
  const StackCatalogue stacks(FORETOKEN_SOURCE_DIR "/data/stacks");
  for (const char* name : {"vllm", "vllm-0.14", "vllm-0.11", "vllm-0.10", "sglang"}) {
    EXPECT_EQ(stack_on(name, hardware.device("h100_sxm")), name);
    for (const char* device : {"mi300x", "mi325x", "mi355x"}) {
      const std::string form = stack_on(name, hardware.device(device));
      EXPECT_TRUE(form.ends_with("-rocm")) << name << " on " << device;
      EXPECT_EQ(stacks.stack(form).name, form);
    }
  }
  EXPECT_EQ(stack_on("torch-graph", hardware.device("mi300x")), "torch-graph");
  EXPECT_EQ(stack_on("mine.json", hardware.device("mi300x")), "mine.json");
}

}  // namespace foretoken::vendor_stack_test
