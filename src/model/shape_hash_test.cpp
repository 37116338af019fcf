#include "model/shape_hash.h"

#include <set>

#include <gtest/gtest.h>

#include "model/shape_fields.h"

namespace foretoken::shape_hash_test {

TEST(ShapeHash, sizes_tell_shapes_apart) {
  std::set<size_t> seen;
  for (int64_t m = 1; m <= 100; ++m) {
    for (int64_t n = 1; n <= 100; ++n) seen.insert(shape_hash(GemmShape{.m = m, .n = n}));
  }
  EXPECT_EQ(seen.size(), 10000U);
  MixedAttentionShape batch;
  const size_t none = shape_hash(batch);
  batch.add_prompts(2, 100, 200);
  const size_t prompts = shape_hash(batch);
  batch.add_decodes(3, 50);
  EXPECT_EQ((std::set<size_t>{none, prompts, shape_hash(batch)}.size()), 3U);
}

TEST(ShapeHash, equal_shapes_have_the_same_whatever_their_family) {
  std::set<size_t> seen;
  for (const char* family : {"gemm", "attention_prefill", "norm", "rope", "activation", "sampling"}) {
    const KernelShape shape = default_shape(family).value(), copy = shape;
    EXPECT_EQ(shape_hash(shape), shape_hash(copy)) << family;
    seen.insert(shape_hash(shape));
  }
  EXPECT_EQ(seen.size(), 6U);
}

}  // namespace foretoken::shape_hash_test
