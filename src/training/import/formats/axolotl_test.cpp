#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "training/import/import_test_support.h"

namespace foretoken::import_config_test {

const std::string axolotl_file = "base_model: m/x\nsequence_len: 64\nmicro_batch_size: 1\n";

TEST(ImportConfig, fused_losses_of_axolotl_hold_no_logits) {
  const std::string adapted = axolotl_file + "adapter: lora\n";
  EXPECT_FALSE(import(adapted).said.logit_bytes);
  EXPECT_EQ(import(adapted + "cut_cross_entropy: true\n").said.logit_bytes, 0);
  EXPECT_EQ(import(adapted + "liger_fused_linear_cross_entropy: true\n").said.logit_bytes, 0);
}

TEST(ImportConfig, weights_that_axolotl_unfreezes_are_named) {
  const ImportedTraining partly = import(axolotl_file + "adapter: lora\nunfrozen_parameters: [lm_head]\n");
  EXPECT_TRUE(partly.without_effect.empty());
  EXPECT_THAT(partly.not_modeled, testing::ElementsAre(testing::StartsWith("unfrozen_parameters")));
}

TEST(ImportConfig, what_axolotl_does_not_model_and_is_off_gets_no_note) {
  const ImportedTraining off =
      import(axolotl_file + "liger_rope: false\nlora_mlp_kernel: no\ntorch_compile: off\nsdp_attention: 0\n");
  EXPECT_TRUE(off.not_modeled.empty());
  EXPECT_EQ(off.without_effect.size(), 4U);
  EXPECT_THAT(import(axolotl_file + "torch_compile: true\ntorch_compile_backend: inductor\n").not_modeled,
              testing::ElementsAre("torch_compile", "torch_compile_backend"));
}

}  // namespace foretoken::import_config_test
