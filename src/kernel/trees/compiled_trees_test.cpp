#include "kernel/trees/compiled_trees.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"
#include "base/random.h"

namespace foretoken::compiled_trees_test {

SymmetricTrees random_trees(size_t count, size_t features, size_t thresholds, RandomStream& random) {
  SymmetricTrees trees;
  for (size_t t = 0; t < count; ++t) {
    const size_t levels = random.below(SymmetricTrees::most_levels + 1);
    trees.levels.push_back(static_cast<uint8_t>(levels));
    for (size_t i = 0; i < levels; ++i) {
      trees.features.push_back(static_cast<uint8_t>(random.below(features)));
      trees.thresholds.push_back(static_cast<float>(random.below(thresholds)));
    }
    for (size_t i = 0; i < size_t{1} << levels; ++i)
      trees.leaves.push_back(static_cast<int16_t>(static_cast<int64_t>(random.below(65536)) - 32768));
  }
  return trees;
}

TEST(CompiledTrees, they_answer_as_the_trees_walked_question_by_question) {
  RandomStream random(1, "trees");
  for (const size_t count : {0, 1, 63, 64, 65, 300}) {
    for (const size_t features : {1, 4, 5, 31, 200}) {
      for (const size_t thresholds : {1, 2, 7, 300}) {
        const SymmetricTrees trees = random_trees(count, features, thresholds, random);
        const CompiledTrees compiled(trees);
        for (int i = 0; i < 20; ++i) {
          std::vector<float> row;
          // On, between and beyond the thresholds, which are whole numbers.
          for (size_t f = 0; f < features; ++f)
            row.push_back(static_cast<float>(random.below(2 * thresholds + 4)) / 2 - 1);
          ASSERT_EQ(compiled.sum(row), trees.sum(row)) << count << " trees of " << features << " features";
        }
      }
    }
  }
}

TEST(CompiledTrees, what_is_not_a_number_is_above_nothing_and_infinity_above_all) {
  RandomStream random(2, "trees");
  const SymmetricTrees trees = random_trees(70, 3, 20, random);
  const CompiledTrees compiled(trees);
  for (const float odd : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    const std::vector<float> row(3, odd);
    EXPECT_EQ(compiled.sum(row), trees.sum(row)) << odd;
  }
}

TEST(CompiledTrees, trees_that_are_too_deep_or_lack_leaves_are_refused) {
  const SymmetricTrees deep{.levels = {9},
                            .features = std::vector<uint8_t>(9, 0),
                            .thresholds = std::vector<float>(9, 0.0F),
                            .leaves = std::vector<int16_t>(512)};
  EXPECT_THROW(CompiledTrees{deep}, InternalError);
  const SymmetricTrees bare{.levels = {1}, .features = {0}, .thresholds = {1.0F}, .leaves = {1}};
  EXPECT_THROW(CompiledTrees{bare}, InternalError);
}

}  // namespace foretoken::compiled_trees_test
