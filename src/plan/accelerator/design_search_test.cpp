#include "plan/accelerator/design_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/statistics.h"
#include "plan/accelerator/knob_effects.h"

namespace foretoken::design_search_test {

// A bowl over a grid: least at `bottom`, which random points rarely hit.
class Bowl : public DesignEvaluator {
 public:
  explicit Bowl(DesignPoint bottom, bool has_bounds = false) : bottom_(std::move(bottom)), has_bounds_(has_bounds) {}

  bool is_allowed(const DesignPoint&) const override { return true; }
  std::optional<RunCosts> least(const DesignPoint& point) const override {
    if (!has_bounds_) return std::nullopt;
    RunCosts costs = costs_of(point);
    costs.energy_pj *= 0.9;
    return costs;
  }
  std::vector<DesignCosts> evaluate(std::span<const DesignPoint> points) override {
    std::vector<DesignCosts> all;
    for (const DesignPoint& point : points) {
      EXPECT_TRUE(seen_.insert(point).second) << "evaluated twice";
      all.push_back({.run = costs_of(point)});
    }
    return all;
  }

 private:
  RunCosts costs_of(const DesignPoint& point) const {
    double square = 0, far = 0;
    for (size_t k = 0; k < point.size(); ++k) {
      const double away = point[k] - bottom_[k];
      square += away * away / static_cast<double>(k + 1);
      far += point[k];
    }
    return {.energy_pj = 1 + square, .cycles = 1 / (1 + far)};
  }

  DesignPoint bottom_;
  bool has_bounds_;
  std::set<DesignPoint> seen_;
};

const DesignObjective energy{.metrics = {MappingMetric::energy}};

ChoiceGrid grid_of(std::vector<int> choices) {
  return {.choices = std::move(choices), .allowed = [](const DesignPoint&) { return true; }};
}

DesignSearchResult search(const ChoiceGrid& grid, DesignEvaluator& evaluator, std::string_view method,
                          size_t evaluations, uint64_t seed, const DesignObjective& objective = energy) {
  return search_designs(objective, {.evaluations = evaluations}, searcher_named(method), seed, grid, {}, evaluator);
}

TEST(DesignSearch, every_method_keeps_its_budget_and_never_forgets_the_best) {
  const ChoiceGrid grid = grid_of({5, 5, 5, 5, 5, 5});
  for (const SearcherKind& kind : all_searchers()) {
    Bowl bowl({3, 1, 4, 1, 0, 2});
    const DesignSearchResult result = search(grid, bowl, kind.name, 60, 7);
    EXPECT_EQ(result.designs.size(), 60) << kind.name;
    EXPECT_TRUE(std::is_sorted(result.best_so_far.rbegin(), result.best_so_far.rend())) << kind.name;
    EXPECT_EQ(energy.value(result.best(energy)->costs.run), result.best_so_far.back()) << kind.name;
  }
}

TEST(DesignSearch, methods_that_learn_end_no_worse_than_chance) {
  const ChoiceGrid grid = grid_of({5, 5, 5, 5, 5, 5});
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const auto best = [&](std::string_view method) {
      Bowl bowl({3, 1, 4, 1, 0, 2});
      return search(grid, bowl, method, 60, seed).best_so_far.back();
    };
    const double by_chance = best("random");
    EXPECT_LE(best("genetic"), by_chance) << seed;
    EXPECT_LE(best("bayesian"), by_chance) << seed;
  }
}

// One search may be lucky: medians of many. A population of 24, of which parents are hardly chosen, fails this.
TEST(DesignSearch, methods_that_learn_are_ahead_of_chance_after_a_few_dozen_designs) {
  const ChoiceGrid grid = grid_of({5, 5, 5, 5, 5, 5});
  const auto median_best = [&](std::string_view method, uint64_t seeds) {
    std::vector<double> best;
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
      Bowl bowl({3, 1, 4, 1, 0, 2});
      best.push_back(search(grid, bowl, method, 50, seed).best_so_far.back());
    }
    return quantile(best, 0.5);
  };
  const double by_chance = median_best("random", 25);
  EXPECT_LT(median_best("genetic", 25), 0.75 * by_chance);
  EXPECT_LT(median_best("bayesian", 5), 0.75 * by_chance);
}

TEST(DesignSearch, the_bayesian_one_finds_the_bottom_of_a_small_space_without_seeing_most_of_it) {
  const ChoiceGrid grid = grid_of({6, 6, 6});
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    Bowl bowl({4, 1, 2});
    const DesignSearchResult result = search(grid, bowl, "bayesian", 60, seed);
    EXPECT_EQ(result.best_so_far.back(), 1) << seed;
  }
}

TEST(DesignSearch, every_method_sees_all_of_a_space_that_is_smaller_than_its_budget) {
  const ChoiceGrid grid = grid_of({3, 4, 2});
  for (const SearcherKind& kind : all_searchers()) {
    Bowl bowl({1, 3, 0});
    const DesignSearchResult result = search(grid, bowl, kind.name, 100, 1);
    EXPECT_EQ(result.designs.size(), 24) << kind.name;
    EXPECT_TRUE(result.exhausted) << kind.name;
  }
}

TEST(DesignSearch, only_points_that_the_grid_allows_are_evaluated) {
  ChoiceGrid grid = grid_of({5, 5, 5, 5});
  grid.allowed = [](const DesignPoint& point) { return point[0] + point[1] + point[2] + point[3] <= 4; };
  for (const SearcherKind& kind : all_searchers()) {
    Bowl bowl({4, 4, 4, 4});
    const DesignSearchResult result = search(grid, bowl, kind.name, 40, 3);
    EXPECT_EQ(result.designs.size(), 40) << kind.name;
    for (const EvaluatedDesign& own : result.designs) EXPECT_TRUE(grid.allowed(own.point)) << kind.name;
  }
}

TEST(DesignSearch, bounds_rule_designs_out_and_lose_nothing) {
  const ChoiceGrid grid = grid_of({6, 6, 6});
  Bowl plain({4, 1, 2}), bounded({4, 1, 2}, true);
  const DesignSearchResult all = search(grid, plain, "exhaustive", 216, 1);
  const DesignSearchResult some = search(grid, bounded, "exhaustive", 216, 1);
  EXPECT_EQ(all.best_so_far.back(), some.best_so_far.back());
  EXPECT_GT(some.ruled_out, 0);
  EXPECT_EQ(static_cast<size_t>(some.ruled_out) + some.designs.size(), 216);
}

TEST(DesignSearch, the_bound_of_a_space_is_below_all_its_designs) {
  const ChoiceGrid grid = grid_of({6, 6, 6});
  Bowl bowl({4, 1, 2}, true);
  const auto bound = space_bound(energy, grid, bowl, 1, 216, 2);
  ASSERT_TRUE(bound);
  EXPECT_DOUBLE_EQ(bound->value, 0.9);
  EXPECT_EQ(bound->designs, 216);
  EXPECT_EQ(bound->no_better, 215);
  EXPECT_FALSE(space_bound(energy, grid, bowl, 1, 215, 1));
}

TEST(DesignSearch, of_two_objectives_more_of_the_frontier_is_found_than_by_chance) {
  const ChoiceGrid grid = grid_of({6, 6, 6});
  const DesignObjective both{.metrics = {MappingMetric::energy, MappingMetric::delay}};
  const auto frontier_by = [&](std::string_view method, size_t evaluations) {
    Bowl bowl({1, 0, 2});
    return design_frontier(search(grid, bowl, method, evaluations, 1, both).designs, both);
  };
  const std::vector<EvaluatedDesign> truth = frontier_by("exhaustive", 216);
  const auto hits = [&](std::string_view method) {
    const std::vector<EvaluatedDesign> frontier = frontier_by(method, 100);
    for (size_t i = 1; i < frontier.size(); ++i) {
      EXPECT_GT(frontier[i].costs.run.energy_pj, frontier[i - 1].costs.run.energy_pj);
      EXPECT_LT(frontier[i].costs.run.cycles, frontier[i - 1].costs.run.cycles);
    }
    return std::count_if(truth.begin(), truth.end(), [&](const EvaluatedDesign& own) {
      return std::any_of(frontier.begin(), frontier.end(),
                         [&](const EvaluatedDesign& other) { return other.point == own.point; });
    });
  };
  const auto by_chance = hits("random");
  EXPECT_GT(hits("genetic"), by_chance);
  EXPECT_GT(hits("bayesian"), by_chance);
}

TEST(KnobEffects, the_knob_with_the_steepest_term_comes_first_with_its_true_ratio) {
  std::vector<EvaluatedDesign> designs;
  const ChoiceGrid grid = grid_of({3, 4});
  for (int64_t i = 0; i < 12; ++i) {
    const DesignPoint point = grid.at(i);
    // Seen more often where it is good, as searches do.
    for (int copies = 0; copies < (point[1] == 0 ? 40 : 10); ++copies) {
      designs.push_back(
          {.point = point, .costs = {.run = {.energy_pj = std::pow(1.1, point[0]) * std::pow(2, point[1])}}});
    }
  }
  const std::vector<KnobEffect> effects = knob_effects(energy, designs, grid.choices);
  EXPECT_EQ(effects[0].knob, 1);
  EXPECT_EQ(effects[0].best, 0);
  EXPECT_NEAR(effects[0].ratio, 8, 0.8);
  EXPECT_NEAR(effects[1].ratio, 1.21, 0.03);
  EXPECT_EQ(effects[0].seen[0], 120);
}

}  // namespace foretoken::design_search_test
