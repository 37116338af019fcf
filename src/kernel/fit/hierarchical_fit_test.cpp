#include "kernel/fit/hierarchical_fit.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "base/random.h"

namespace foretoken::hierarchical_fit_test {

// Synthetic devices with a planted law: time = floor + size / rate, both constants times a factor per device.
struct Planted {
  std::vector<double> sizes, seconds;
  double predicted(size_t row, std::span<const double> logs) const {
    return std::exp(logs[0]) + sizes[row] / std::exp(logs[1]);
  }
  RowError error() const {
    return [this](size_t row, std::span<const double> logs, int& choice) {
      choice = 0;
      return std::log(predicted(row, logs) / seconds[row]);
    };
  }
};

constexpr double planted_floor = 3, planted_rate = 50;
constexpr size_t rows_per_device = 80;

// `odd` multiplies the times of device 0; `noise` is the deviation of the logarithm.
Planted plant(size_t devices, double odd, double noise) {
  RandomStream random(7, "planted");
  Planted planted;
  for (size_t d = 0; d < devices; ++d) {
    for (size_t r = 0; r < rows_per_device; ++r) {
      const double size = std::exp2(random.uniform(0, 14));
      planted.sizes.push_back(size);
      planted.seconds.push_back((planted_floor + size / planted_rate) * (d == 0 ? odd : 1) *
                                std::exp(random.normal(0, noise)));
    }
  }
  return planted;
}

// Effect 0 is common, effect 1 + d the device's own.
HierarchicalFit fit_of(size_t devices, double common_strength = 1e-4, double device_strength = 0.1) {
  HierarchicalFit fit{.constants = 2, .bounds = {{}, {}}};
  fit.effects.push_back({.name = "common",
                         .strength = common_strength,
                         .offsets = {std::log(planted_floor * 4), std::log(planted_rate / 5)},
                         .pull_to_start = true});
  for (size_t d = 0; d < devices; ++d) {
    fit.effects.push_back({.name = "device", .strength = device_strength, .offsets = {0, 0}});
    fit.groups.push_back({.effects = {0, d + 1},
                          .first_row = d * rows_per_device,
                          .rows = rows_per_device,
                          .weight = 1.0 / static_cast<double>(devices)});
  }
  return fit;
}

TEST(HierarchicalFit, planted_constants_are_found_from_a_start_that_is_far_off) {
  const Planted planted = plant(3, 1, 0.02);
  HierarchicalFit fit = fit_of(3);
  const double loss = solve(fit, planted.error());
  EXPECT_LT(loss, 0.01);
  for (const FitGroup& group : fit.groups) {
    const std::vector<double> logs = log_constants(fit, group.effects);
    EXPECT_NEAR(std::exp(logs[0]), planted_floor, 0.02 * planted_floor);
    EXPECT_NEAR(std::exp(logs[1]), planted_rate, 0.02 * planted_rate);
  }
}

TEST(HierarchicalFit, an_odd_device_keeps_its_oddness_to_itself) {
  const Planted planted = plant(5, 2, 0.01);
  HierarchicalFit fit = fit_of(5);
  solve(fit, planted.error());
  // What is common moves by no more than the odd one's share, a fifth of its factor of two.
  const double share = std::log(2.0) / 5;
  EXPECT_NEAR(fit.effects[0].offsets[0], std::log(planted_floor), share + 0.02);
  EXPECT_NEAR(fit.effects[0].offsets[1], std::log(planted_rate), share + 0.02);
  // The others are told as they are, and so is the odd one.
  for (size_t d = 1; d < 5; ++d) {
    const std::vector<double> usual = log_constants(fit, fit.groups[d].effects);
    EXPECT_NEAR(std::exp(usual[0]), planted_floor, 0.04 * planted_floor);
    EXPECT_NEAR(std::exp(usual[1]), planted_rate, 0.04 * planted_rate);
  }
  const std::vector<double> odd = log_constants(fit, fit.groups[0].effects);
  EXPECT_NEAR(std::exp(odd[0]), 2 * planted_floor, 0.1 * planted_floor);
  EXPECT_NEAR(std::exp(odd[1]), planted_rate / 2, 0.05 * planted_rate);
}

TEST(HierarchicalFit, a_strong_pull_lets_no_device_go_its_own_way) {
  const Planted planted = plant(5, 2, 0.01);
  HierarchicalFit fit = fit_of(5, 1e-4, 1e6);
  solve(fit, planted.error());
  for (size_t d = 0; d < 5; ++d) {
    for (const double offset : fit.effects[1 + d].offsets) EXPECT_NEAR(offset, 0, 1e-4);
  }
}

TEST(HierarchicalFit, a_strong_pull_to_the_start_stays_at_the_start) {
  const Planted planted = plant(2, 1, 0);
  HierarchicalFit fit = fit_of(2, 1e7, 1e7);
  const std::vector<double> start = fit.effects[0].offsets;
  solve(fit, planted.error());
  for (size_t k = 0; k < 2; ++k) EXPECT_NEAR(fit.effects[0].offsets[k], start[k], 1e-4);
}

TEST(HierarchicalFit, fixed_effects_stay_where_they_are) {
  const Planted planted = plant(3, 1.5, 0.01);
  HierarchicalFit fit = fit_of(3);
  fit.effects[0].fixed = true;
  const std::vector<double> before = fit.effects[0].offsets;
  solve(fit, planted.error());
  EXPECT_EQ(fit.effects[0].offsets, before);
  EXPECT_NE(fit.effects[1].offsets[0], 0);
}

TEST(HierarchicalFit, one_row_in_ten_off_by_a_factor_of_a_hundred_does_not_steer) {
  Planted planted = plant(3, 1, 0.02);
  for (size_t row = 0; row < planted.seconds.size(); row += 10) planted.seconds[row] *= 100;
  HierarchicalFit fit = fit_of(3);
  solve(fit, planted.error());
  EXPECT_NEAR(std::exp(fit.effects[0].offsets[0]), planted_floor, 0.05 * planted_floor);
  EXPECT_NEAR(std::exp(fit.effects[0].offsets[1]), planted_rate, 0.05 * planted_rate);
}

TEST(HierarchicalFit, bounds_hold_whatever_the_rows_say) {
  const Planted planted = plant(2, 1, 0.01);
  HierarchicalFit fit = fit_of(2);
  fit.bounds[1] = {.least = std::log(planted_rate * 2), .most = std::log(planted_rate * 4)};
  solve(fit, [&](size_t row, std::span<const double> logs, int& choice) {
    choice = 0;
    // A derivative may reach a nudge beyond.
    EXPECT_GE(logs[1], fit.bounds[1].least - 1e-3);
    EXPECT_LE(logs[1], fit.bounds[1].most + 1e-3);
    return std::log(planted.predicted(row, logs) / planted.seconds[row]);
  });
  const std::vector<double> logs = log_constants(fit, fit.groups[0].effects);
  EXPECT_DOUBLE_EQ(logs[1], fit.bounds[1].least);
}

TEST(HierarchicalFit, the_loss_falls_from_round_to_round_and_the_answer_is_the_same_each_time) {
  const Planted planted = plant(4, 1.4, 0.05);
  const auto run = [&](std::vector<double>& losses) {
    HierarchicalFit fit = fit_of(4);
    losses.push_back(solve(fit, planted.error(), [&](int, double loss) { losses.push_back(loss); }));
    return fit.effects[2].offsets;
  };
  std::vector<double> first, second;
  EXPECT_EQ(run(first), run(second));
  EXPECT_EQ(first, second);
  ASSERT_GT(first.size(), 3u);
  for (size_t i = 1; i + 1 < first.size(); ++i) EXPECT_LT(first[i], first[i - 1]);
}

TEST(HierarchicalFit, the_choice_of_a_row_is_kept_while_its_slope_is_taken) {
  HierarchicalFit fit{.constants = 1, .bounds = {{}}};
  fit.effects.push_back({.name = "common", .offsets = {0.5}});
  fit.groups.push_back({.effects = {0}, .first_row = 0, .rows = 3});
  int asked_to_choose = 0, asked_to_keep = 0;
  solve(fit, [&](size_t row, std::span<const double> logs, int& choice) {
    if (choice < 0) {
      ++asked_to_choose;
      choice = static_cast<int>(row) + 5;
    } else {
      ++asked_to_keep;
      EXPECT_EQ(choice, static_cast<int>(row) + 5);
    }
    return logs[0] - 2;
  });
  EXPECT_GT(asked_to_choose, 0);
  EXPECT_GT(asked_to_keep, 0);
  EXPECT_GT(fit.effects[0].offsets[0], 0.5);
}

TEST(HierarchicalFit, offsets_and_bounds_that_do_not_fit_are_our_own_mistake) {
  const RowError zero = [](size_t, std::span<const double>, int&) { return 0.0; };
  HierarchicalFit no_bounds = fit_of(1);
  no_bounds.bounds.clear();
  EXPECT_THROW(solve(no_bounds, zero), InternalError);
  HierarchicalFit short_effect = fit_of(1);
  short_effect.effects[1].offsets.pop_back();
  EXPECT_THROW(solve(short_effect, zero), InternalError);
}

}  // namespace foretoken::hierarchical_fit_test
