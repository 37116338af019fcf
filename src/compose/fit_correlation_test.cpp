#include "compose/fit_correlation.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/random.h"

namespace foretoken {
namespace {

// Steps of 40 kernels of each of two forms, all of half-width 1, whose errors have the correlations asked for.
std::vector<CorrelationSample> made_up_steps(double first, double second, size_t count) {
  RandomStream random(11, "steps");
  constexpr int kernels = 40;
  std::vector<CorrelationSample> samples;
  const double deviation = 1 / 1.6449;
  const auto normal = [&] {
    double sum = 0;
    for (int i = 0; i < 12; ++i) sum += random.uniform(0, 1);
    return sum - 6;
  };
  for (size_t i = 0; i < count; ++i) {
    double error = 0;
    for (const double correlation : {first, second}) {
      const double shared = std::sqrt(correlation) * normal();
      for (int kernel = 0; kernel < kernels; ++kernel) {
        error += deviation * (shared + std::sqrt(1 - correlation) * normal());
      }
    }
    samples.push_back({.error = std::abs(error), .forms = {{"one", kernels, kernels}, {"other", kernels, kernels}}});
  }
  return samples;
}

TEST(FitCorrelation, independent_and_common_errors_are_told_apart) {
  const CorrelationFit independent = fit_correlations(made_up_steps(0, 0, 400));
  EXPECT_EQ(independent.correlations.within.at("one"), 0);
  EXPECT_EQ(independent.correlations.between, 0);
  const CorrelationFit common = fit_correlations(made_up_steps(0.5, 0.5, 400));
  const double mean =
      (common.correlations.within.at("one") + common.correlations.within.at("other")) / 2 + common.correlations.between;
  EXPECT_NEAR(mean, 0.5, 0.1);
}

TEST(FitCorrelation, fitted_intervals_hold_nine_steps_in_ten_and_lie_between_the_extremes) {
  for (const double correlation : {0.0, 0.2, 0.6}) {
    const CorrelationFit fit = fit_correlations(made_up_steps(correlation, correlation, 400));
    EXPECT_EQ(fit.steps, 400u);
    EXPECT_NEAR(fit.fitted, 90, 4) << correlation;
    EXPECT_LE(fit.independent, fit.fitted + 1e-9);
    EXPECT_GE(fit.alike, fit.fitted - 1e-9);
  }
}

TEST(FitCorrelation, forms_in_few_steps_take_what_the_others_have) {
  std::vector<CorrelationSample> samples = made_up_steps(0.3, 0.3, 100);
  samples.front().forms.push_back({"rare", 0.1, 0.01});
  const CorrelationFit fit = fit_correlations(samples);
  EXPECT_FALSE(fit.correlations.within.contains("rare"));
  EXPECT_EQ(fit.correlations.within_form("rare"), fit.correlations.within_other);
}

}  // namespace
}  // namespace foretoken
