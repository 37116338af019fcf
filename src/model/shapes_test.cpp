#include "model/shapes.h"

#include <gtest/gtest.h>

namespace foretoken::model_shapes_test {

TEST(Shapes, phases_and_kinds_have_families_of_their_own) {
  EXPECT_EQ(family_name(GemmShape{}), "gemm");
  EXPECT_EQ(family_name(AttentionShape{.phase = AttentionPhase::prefill}), "attention_prefill");
  EXPECT_EQ(family_name(AttentionShape{.phase = AttentionPhase::decode}), "attention_decode");
  EXPECT_EQ(family_name(AttentionShape{.phase = AttentionPhase::encoder}), "attention_encoder");
  EXPECT_EQ(family_name(MixedAttentionShape{}), "attention_mixed");
  EXPECT_EQ(family_name(LatentAttentionShape{.phase = AttentionPhase::decode}), "mla_decode");
  EXPECT_EQ(family_name(LinearAttentionShape{.kind = LinearAttentionKind::kda}), "linattn_kda");
  EXPECT_EQ(family_name(LinearAttentionShape{.kind = LinearAttentionKind::lightning}), "linattn_lightning");
  EXPECT_EQ(family_name(CollectiveShape{}), "collective");
}

TEST(Shapes, every_collective_is_found_by_its_name) {
  for (const std::string_view name : collective_kind_names) {
    const std::optional<CollectiveKind> kind = collective_kind_from_name(name);
    ASSERT_TRUE(kind.has_value()) << name;
    EXPECT_EQ(collective_kind_name(*kind), name);
  }
  EXPECT_FALSE(collective_kind_from_name("all_rduce").has_value());
}

TEST(MixedAttention, parts_hold_every_token_and_every_key) {
  MixedAttentionShape shape{.heads = 32, .kv_heads = 8};
  shape.add_prompts(2, 512, 4096);
  shape.add_prompts(1, 17, 17);
  shape.add_prompts(1, 512, 4096);
  for (const int64_t keys : {1, 100, 7, 9000}) shape.add_decodes(1, keys);
  EXPECT_EQ(shape.prompt_count(), 4);
  EXPECT_EQ(shape.longest_decode, 9000);
  int64_t sequences = 0, queries = 0, keys = 0;
  const AttentionParts parts = equal_parts(shape);
  for (const AttentionShape& call : parts.all()) {
    EXPECT_EQ(call.heads, 32);
    sequences += call.batch;
    queries += call.batch * call.q_len;
    keys += call.batch * call.kv_len;
  }
  EXPECT_EQ(sequences, 8);
  EXPECT_EQ(queries, 3 * 512 + 17 + 4);
  EXPECT_EQ(keys, 3 * 4096 + 17 + 9108);
}

TEST(MixedAttention, more_lengths_than_it_has_room_for_keep_their_number) {
  MixedAttentionShape shape;
  for (int64_t length = 1; length <= 20; ++length) shape.add_prompts(1, length, 10 * length);
  EXPECT_EQ(shape.prompt_count(), 20);
  // 4 to 20 share the last kind; every merge rounds by half at most.
  EXPECT_EQ(shape.prompts.back().count, 17);
  EXPECT_GE(shape.prompts.back().q_len, 11);
  EXPECT_LE(shape.prompts.back().q_len, 13);
  EXPECT_GE(shape.prompts.back().kv_len, shape.prompts.back().q_len);
}

}  // namespace foretoken::model_shapes_test
