#include "kernel/trees/boosted_trees.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/base64.h"
#include "base/error.h"
#include "base/random.h"
#include "kernel/test_support.h"

namespace foretoken::boosted_trees_test {

using test_support::problem_of;
using testing::HasSubstr;

struct Table {
  std::vector<float> values, targets;
};

// Rows of `width` numbers in [0, 1) with the target that `law` gives them.
template <class Law>
Table table_of(size_t rows, size_t width, uint64_t seed, Law law) {
  RandomStream random(seed, "table");
  Table table;
  for (size_t r = 0; r < rows; ++r) {
    std::vector<float> row;
    for (size_t f = 0; f < width; ++f) row.push_back(static_cast<float>(random.uniform()));
    table.targets.push_back(static_cast<float>(law(row)));
    table.values.insert(table.values.end(), row.begin(), row.end());
  }
  return table;
}

double mean_absolute_error(const BoostedTrees& trees, const Table& table, size_t width) {
  double sum = 0;
  for (size_t r = 0; r < table.targets.size(); ++r) {
    const std::span<const float> row(table.values.data() + r * width, width);
    sum += std::abs(trees.predict(row) - static_cast<double>(table.targets[r]));
  }
  return sum / static_cast<double>(table.targets.size());
}

double step(const std::vector<float>& row) {
  return row[1] > 0.35F ? 0.4 : -0.2;
}

double curve(const std::vector<float>& row) {
  return 0.3 * std::sin(6.0 * static_cast<double>(row[0])) + 0.5 * static_cast<double>(row[2] * row[2]);
}

TEST(BoostedTrees, a_step_is_learned_where_it_is) {
  const Table seen = table_of(2000, 3, 1, step), unseen = table_of(1000, 3, 2, step);
  const BoostedTrees trees = fit_boosted_trees(seen.values, 3, seen.targets, {.trees = 120, .depth = 2});
  // One threshold of 64 over rows in [0, 1): up to 1/64 of the rows lie on the wrong side of a step of 0.6.
  EXPECT_LT(mean_absolute_error(trees, unseen, 3), 0.6 / 64);
}

TEST(BoostedTrees, a_sum_of_curves_is_learned_from_noisy_rows) {
  RandomStream noise(3, "noise");
  const Table seen =
      table_of(4000, 4, 1, [&](const std::vector<float>& row) { return curve(row) + noise.normal(0, 0.02); });
  const Table unseen = table_of(1000, 4, 2, curve);
  const BoostedTrees trees = fit_boosted_trees(seen.values, 4, seen.targets, {.trees = 200, .depth = 4});
  EXPECT_LT(mean_absolute_error(trees, unseen, 4), 0.015);
}

TEST(BoostedTrees, an_outlier_in_twenty_hardly_moves_the_answer) {
  size_t row_number = 0;
  const Table seen = table_of(2000, 3, 1, [&](const std::vector<float>& row) {
    return ++row_number % 20 == 0 ? 50.0 : step(row);  // the mean of a leaf would be off by 2.5
  });
  const Table unseen = table_of(500, 3, 2, step);
  const BoostedTrees trees = fit_boosted_trees(seen.values, 3, seen.targets, {.trees = 120, .depth = 2});
  EXPECT_LT(mean_absolute_error(trees, unseen, 3), 0.05);
}

TEST(BoostedTrees, the_same_rows_give_the_same_trees) {
  const Table seen = table_of(500, 3, 1, curve);
  const auto text = [&] { return fit_boosted_trees(seen.values, 3, seen.targets, {.trees = 30}).to_json().dump(); };
  EXPECT_EQ(text(), text());
}

TEST(BoostedTrees, progress_tells_every_tree) {
  const Table seen = table_of(50, 3, 1, curve);
  std::vector<int> told;
  fit_boosted_trees(seen.values, 3, seen.targets, {.trees = 4}, [&](int tree) { told.push_back(tree); });
  EXPECT_EQ(told, (std::vector<int>{1, 2, 3, 4}));
}

TEST(BoostedTrees, a_constant_target_needs_no_question) {
  const Table seen = table_of(300, 2, 1, [](const auto&) { return 0.25; });
  const BoostedTrees trees = fit_boosted_trees(seen.values, 2, seen.targets, {.trees = 150});
  EXPECT_NEAR(trees.predict(std::vector<float>{-5, 7}), 0.25, 1e-3);
  const Json written = trees.to_json();
  EXPECT_EQ(written.find("features_u8")->string(), "");
}

TEST(BoostedTrees, one_row_is_half_believed_and_none_at_all_predicts_zero) {
  const std::vector<float> row = {1, 2}, target = {0.5F};
  // A leaf of one row is shrunk to 1 / (1 + min_leaf_rows) of its median, tree after tree.
  const BoostedTrees one = fit_boosted_trees(row, 2, target, {.trees = 1, .learning_rate = 0.1, .min_leaf_rows = 9});
  EXPECT_NEAR(one.predict(row), 0.5 * 0.1 / 10, 2e-5);
  const BoostedTrees none = fit_boosted_trees({}, 2, {}, {});
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.predict(row), 0);
  EXPECT_EQ(BoostedTrees().predict({}), 0);
}

TEST(BoostedTrees, a_feature_that_never_varies_is_never_asked) {
  Table seen = table_of(400, 2, 1, [](const std::vector<float>& row) { return row[1] > 0.5F ? 1 : 0; });
  for (size_t r = 0; r < 400; ++r) seen.values[2 * r] = 3;
  const BoostedTrees trees = fit_boosted_trees(seen.values, 2, seen.targets, {.trees = 20, .depth = 3});
  const Json written = trees.to_json();
  const std::optional<std::vector<uint8_t>> asked = from_base64(written.find("features_u8")->string());
  EXPECT_FALSE(asked->empty());
  for (const uint8_t feature : *asked) EXPECT_EQ(feature, 1);
}

TEST(BoostedTrees, rows_and_settings_that_do_not_fit_are_our_own_mistake) {
  const std::vector<float> three = {1, 2, 3}, two = {1, 2};
  EXPECT_THROW(fit_boosted_trees(three, 2, two, {}), InternalError);
  EXPECT_THROW(fit_boosted_trees(two, 1, two, {.depth = 13}), InternalError);
  EXPECT_THROW(fit_boosted_trees(two, 1, two, {.bins = 257}), InternalError);
}

TEST(BoostedTrees, written_and_read_back_they_answer_the_same) {
  const Table seen = table_of(800, 5, 1, curve);
  const BoostedTrees trees =
      fit_boosted_trees(seen.values, 5, seen.targets, {.trees = 40, .depth = 6, .min_leaf_rows = 2, .bins = 256});
  const Json written = parse_json(trees.to_json().dump(), "trees.json");
  const BoostedTrees read = BoostedTrees::from_json(JsonView(written, "trees.json"));
  EXPECT_EQ(read.features(), 5u);
  for (const Table& table : {seen, table_of(500, 5, 9, curve)}) {
    for (size_t r = 0; r < table.targets.size(); ++r) {
      const std::span<const float> row(table.values.data() + r * 5, 5);
      EXPECT_EQ(read.predict(row), trees.predict(row));
    }
  }
  EXPECT_EQ(read.to_json().dump(), written.dump());
}

TEST(BoostedTrees, asked_often_enough_to_be_compiled_they_answer_as_before) {
  const Table seen = table_of(300, 4, 1, curve);
  const BoostedTrees trees = fit_boosted_trees(seen.values, 4, seen.targets, {.trees = 30, .depth = 5});
  for (size_t i = 0; i < 1000; ++i) {
    const std::span<const float> row(seen.values.data() + i % 300 * 4, 4);
    ASSERT_EQ(trees.predict(row), BoostedTrees::leaf_step * trees.trees().sum(row)) << "at question " << i;
  }
}

// Trees of a file in which one entry was changed.
class DamagedTrees : public testing::Test {
 protected:
  DamagedTrees() {
    const Table seen = table_of(300, 3, 1, curve);
    document = fit_boosted_trees(seen.values, 3, seen.targets, {.trees = 5, .depth = 3}).to_json();
  }
  InputProblem read_with(const std::string& key, Json value) const {
    Json changed = document;
    changed.set(key, std::move(value));
    return problem_of([&] { BoostedTrees::from_json(JsonView(changed, "damaged.json", "residual")); });
  }
  std::vector<uint8_t> bytes(const std::string& key) const { return *from_base64(document.find(key)->string()); }
  Json document;
};

TEST_F(DamagedTrees, text_that_is_no_base64_is_refused_by_key) {
  for (const char* key : {"levels_u8", "features_u8", "thresholds_f32", "leaves_i16"}) {
    const InputProblem problem = read_with(key, "not base64!");
    EXPECT_EQ(problem.source, "damaged.json");
    EXPECT_EQ(problem.path, std::string("residual.") + key);
  }
}

TEST_F(DamagedTrees, one_entry_more_or_less_is_refused) {
  for (const char* key : {"levels_u8", "features_u8", "thresholds_f32", "leaves_i16"}) {
    std::vector<uint8_t> longer = bytes(key), shorter = bytes(key);
    longer.insert(longer.end(), 4, 1);
    shorter.resize(shorter.size() - (key == std::string("thresholds_f32") ? 4 : 2));
    EXPECT_THAT(read_with(key, base64(longer)).path, HasSubstr("residual")) << key;
    EXPECT_THAT(read_with(key, base64(shorter)).path, HasSubstr("residual")) << key;
  }
}

TEST_F(DamagedTrees, half_a_number_is_refused) {
  for (const char* key : {"thresholds_f32", "leaves_i16"}) {
    std::vector<uint8_t> longer = bytes(key);
    longer.push_back(1);
    EXPECT_THAT(read_with(key, base64(longer)).path, HasSubstr("residual")) << key;
  }
}

TEST_F(DamagedTrees, questions_about_features_that_do_not_exist_are_refused) {
  EXPECT_EQ(read_with("feature_count", 1).path, "residual.features_u8");
  EXPECT_EQ(read_with("feature_count", 256).path, "residual.feature_count");
  EXPECT_EQ(read_with("feature_count", -1).path, "residual.feature_count");
}

TEST_F(DamagedTrees, a_tree_too_deep_for_memory_is_refused) {
  EXPECT_EQ(read_with("levels_u8", base64(std::vector<uint8_t>{255})).path, "residual.levels_u8");
}

TEST_F(DamagedTrees, a_missing_key_is_named) {
  const Json only_count = Json::object({{"feature_count", 3}});
  const InputProblem problem = problem_of([&] { BoostedTrees::from_json(JsonView(only_count, "short.json")); });
  EXPECT_THAT(problem.path + problem.expected + problem.value, HasSubstr("levels_u8"));
}

}  // namespace foretoken::boosted_trees_test
