#include "kernel/fit/fit_smooth_residual.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/json.h"
#include "base/random.h"
#include "kernel/trees/boosted_trees.h"

namespace foretoken::fit_smooth_residual_test {

// Two groups with a hill in common and a slope of their own; the second feature says nothing.
struct Rows {
  std::vector<float> values, targets;
  Rows(std::string_view stream, size_t rows) {
    RandomStream random(3, stream);
    for (size_t i = 0; i < rows; ++i) {
      const double x = random.uniform(0, 10), other = random.uniform(-1, 1);
      const auto group = static_cast<double>(random.below(2));
      values.insert(values.end(), {static_cast<float>(x), static_cast<float>(other), static_cast<float>(group)});
      targets.push_back(
          static_cast<float>(std::exp(-0.5 * (x - 4) * (x - 4)) + 0.05 * group * x + random.normal(0, 0.02)));
    }
  }
  template <class Residual>
  double mean_error(const Residual& residual) const {
    double sum = 0;
    for (size_t i = 0; i < targets.size(); ++i)
      sum += std::abs(residual.predict(std::span(values).subspan(3 * i, 3)) - targets[i]);
    return sum / static_cast<double>(targets.size());
  }
};

SmoothResidual fitted(const Rows& rows) {
  return fit_smooth_residual(rows.values, 3, 2, rows.targets);
}

TEST(FitSmoothResidual, few_rows_of_a_smooth_law_say_more_than_trees_learn_from_them) {
  const Rows seen("seen", 80), unseen("unseen", 400);
  const double smooth = unseen.mean_error(fitted(seen));
  const BoostedTrees trees = fit_boosted_trees(seen.values, 3, seen.targets,
                                               {.trees = 200, .depth = 5, .learning_rate = 0.1, .min_leaf_rows = 2});
  EXPECT_LT(smooth, 0.035) << "noise alone is 0.016";
  EXPECT_LT(smooth, 0.6 * unseen.mean_error(trees));
}

TEST(FitSmoothResidual, far_from_all_rows_it_says_little_and_without_rows_nothing) {
  const SmoothResidual smooth = fitted(Rows("seen", 80));
  EXPECT_LT(std::abs(smooth.predict(std::vector<float>{1e6F, 0, 0})), 0.01);
  EXPECT_TRUE(fit_smooth_residual({}, 3, 2, {}).empty());
  EXPECT_EQ(SmoothResidual().predict(std::vector<float>{1, 2, 3}), 0);
}

TEST(FitSmoothResidual, the_same_rows_give_the_same_file_and_the_file_the_same_answers) {
  const Rows rows("seen", 40);
  const SmoothResidual smooth = fitted(rows);
  const Json file = smooth.to_json();
  EXPECT_EQ(file.dump(), fitted(rows).to_json().dump());
  const SmoothResidual read = SmoothResidual::from_json(JsonView(file, "made up"), 3);
  EXPECT_EQ(read.to_json().dump(), file.dump());
  EXPECT_EQ(rows.mean_error(read), rows.mean_error(smooth));
}

TEST(FitSmoothResidual, parts_that_do_not_belong_together_are_refused) {
  SmoothResidual::Parts parts = fitted(Rows("seen", 20)).parts();
  EXPECT_FALSE(SmoothResidual::flaw(parts, 3));
  EXPECT_TRUE(SmoothResidual::flaw(parts, 2)) << "the group is the third feature";
  parts.places.pop_back();
  EXPECT_TRUE(SmoothResidual::flaw(parts, 3));
  parts.places.push_back(std::nanf(""));
  EXPECT_TRUE(SmoothResidual::flaw(parts, 3));
  Json file = fitted(Rows("seen", 20)).to_json();
  file.set("weights_f32", "AAAA");
  EXPECT_THROW(SmoothResidual::from_json(JsonView(file, "made up"), 3), InputError);
}

}  // namespace foretoken::fit_smooth_residual_test
