#include "model/shapes.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(Shapes, phases_and_kinds_have_families_of_their_own) {
  EXPECT_EQ(family_name(GemmShape{}), "gemm");
  EXPECT_EQ(family_name(AttentionShape{.phase = AttentionPhase::prefill}), "attention_prefill");
  EXPECT_EQ(family_name(AttentionShape{.phase = AttentionPhase::decode}), "attention_decode");
  EXPECT_EQ(family_name(AttentionShape{.phase = AttentionPhase::encoder}), "attention_encoder");
  EXPECT_EQ(family_name(LatentAttentionShape{.phase = AttentionPhase::decode}), "mla_decode");
  EXPECT_EQ(family_name(LinearAttentionShape{.kind = LinearAttentionKind::kda}), "linattn_kda");
  EXPECT_EQ(family_name(LinearAttentionShape{.kind = LinearAttentionKind::lightning}), "linattn_lightning");
  EXPECT_EQ(family_name(CollectiveShape{}), "collective");
}

}  // namespace
}  // namespace foretoken
