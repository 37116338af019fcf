#include "kernel/fit/compiled_trees.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"
#include "base/random.h"

namespace foretoken {
namespace {

// Question by question, as a tree is drawn.
int32_t walked(const std::vector<SymmetricTree>& trees, const std::vector<float>& features) {
  int32_t sum = 0;
  for (const SymmetricTree& tree : trees) {
    size_t leaf = 0;
    for (size_t level = 0; level < tree.feature.size(); ++level) {
      if (features[tree.feature[level]] > tree.threshold[level]) leaf |= size_t{1} << level;
    }
    sum += tree.leaf[leaf];
  }
  return sum;
}

std::vector<SymmetricTree> random_trees(size_t count, size_t features, size_t thresholds, RandomStream& random) {
  std::vector<SymmetricTree> trees(count);
  for (SymmetricTree& tree : trees) {
    const size_t levels = random.below(CompiledTrees::most_levels + 1);
    for (size_t i = 0; i < levels; ++i) {
      tree.feature.push_back(static_cast<uint16_t>(random.below(features)));
      tree.threshold.push_back(static_cast<float>(random.below(thresholds)));
    }
    for (size_t i = 0; i < size_t{1} << levels; ++i)
      tree.leaf.push_back(static_cast<int16_t>(static_cast<int64_t>(random.below(65536)) - 32768));
  }
  return trees;
}

TEST(CompiledTrees, they_answer_as_the_trees_walked_question_by_question) {
  RandomStream random(1, "trees");
  for (const size_t count : {0, 1, 63, 64, 65, 300}) {
    for (const size_t features : {1, 4, 5, 31, 200}) {
      for (const size_t thresholds : {1, 2, 7, 300}) {
        const std::vector<SymmetricTree> trees = random_trees(count, features, thresholds, random);
        const CompiledTrees compiled(trees);
        for (int i = 0; i < 20; ++i) {
          std::vector<float> row;
          // On, between and beyond the thresholds, which are whole numbers.
          for (size_t f = 0; f < features; ++f)
            row.push_back(static_cast<float>(random.below(2 * thresholds + 4)) / 2 - 1);
          ASSERT_EQ(compiled.sum(row), walked(trees, row)) << count << " trees of " << features << " features";
        }
      }
    }
  }
}

TEST(CompiledTrees, what_is_not_a_number_is_above_nothing_and_infinity_above_all) {
  RandomStream random(2, "trees");
  const std::vector<SymmetricTree> trees = random_trees(70, 3, 20, random);
  const CompiledTrees compiled(trees);
  for (const float odd : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    const std::vector<float> row(3, odd);
    EXPECT_EQ(compiled.sum(row), walked(trees, row)) << odd;
  }
}

TEST(CompiledTrees, trees_that_are_too_deep_or_lack_leaves_are_refused) {
  SymmetricTree deep{.feature = std::vector<uint16_t>(9, 0), .threshold = std::vector<float>(9, 0.0F)};
  deep.leaf.resize(512);
  EXPECT_THROW(CompiledTrees(std::vector{deep}), InternalError);
  const SymmetricTree bare{.feature = {0}, .threshold = {1.0F}, .leaf = {1}};
  EXPECT_THROW(CompiledTrees(std::vector{bare}), InternalError);
}

}  // namespace
}  // namespace foretoken
