#include "kernel/trees/symmetric_trees.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace foretoken::symmetric_trees_test {

// A tree of two questions and one of none.
SymmetricTrees two_trees() {
  return {.levels = {2, 0}, .features = {1, 0}, .thresholds = {0.5F, 10}, .leaves = {1, 2, 4, 8, 100}};
}

TEST(SymmetricTrees, each_question_sets_its_bit_of_the_leafs_number) {
  const SymmetricTrees trees = two_trees();
  const float nan = std::nanf("");
  EXPECT_EQ(trees.sum(std::vector<float>{0, 0}), 101);
  EXPECT_EQ(trees.sum(std::vector<float>{0, 1}), 102);
  EXPECT_EQ(trees.sum(std::vector<float>{11, 0}), 104);
  EXPECT_EQ(trees.sum(std::vector<float>{11, 1}), 108);
  EXPECT_EQ(trees.sum(std::vector<float>{10, 0.5F}), 101);  // on a threshold is not above it
  EXPECT_EQ(trees.sum(std::vector<float>{nan, nan}), 101);
  EXPECT_EQ(SymmetricTrees().sum({}), 0);
}

TEST(SymmetricTrees, arrays_that_do_not_make_trees_are_told_by_name) {
  EXPECT_FALSE(two_trees().flaw(2));
  EXPECT_STREQ(two_trees().flaw(1)->array, "features");
  SymmetricTrees trees = two_trees();
  trees.thresholds[1] = std::numeric_limits<float>::infinity();
  EXPECT_STREQ(trees.flaw(2)->array, "thresholds");
  trees = two_trees();
  trees.levels[1] = 9;
  EXPECT_STREQ(trees.flaw(2)->array, "levels");
  trees = two_trees();
  trees.leaves.pop_back();
  EXPECT_STREQ(trees.flaw(2)->array, "");
  trees = two_trees();
  trees.features.push_back(0);
  EXPECT_STREQ(trees.flaw(2)->array, "");
  trees = {.levels = std::vector<uint8_t>(1025, 0), .leaves = std::vector<int16_t>(1025)};
  EXPECT_STREQ(trees.flaw(2)->array, "levels");
}

}  // namespace foretoken::symmetric_trees_test
