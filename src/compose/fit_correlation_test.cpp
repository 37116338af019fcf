#include "compose/fit_correlation.h"

#include <cmath>
#include <filesystem>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "base/normal_distribution.h"
#include "base/random.h"

namespace foretoken::fit_correlation_test {

// Steps of 40 kernels of each of two forms, all of half-width 1, whose errors have the correlations asked for.
std::vector<CorrelationSample> made_up_steps(double first, double second, size_t count) {
  RandomStream random(11, "steps");
  constexpr int kernels = 40;
  std::vector<CorrelationSample> samples;
  const double deviation = 1 / normal_half_width_90;
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

// What the reader makes of the fit's file.
ErrorCorrelations read_back(const CorrelationFit& fit) {
  const auto* info = testing::UnitTest::GetInstance()->current_test_info();
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / (std::string(info->name()) + ".json");
  write_file(file, error_correlations_json(fit.correlations));
  const ErrorCorrelations read = read_error_correlations(file);
  std::filesystem::remove(file);
  return read;
}

// Steps of which every kernel is off by all of its width, or by half.
std::vector<CorrelationSample> common_steps(const std::vector<CorrelationSample::Form>& forms, size_t count) {
  std::vector<CorrelationSample> samples;
  for (size_t i = 0; i < count; ++i) {
    CorrelationSample sample{.forms = forms};
    for (const CorrelationSample::Form& form : forms) sample.error += (i % 2 == 0 ? 1 : 0.5) * form.linear;
    samples.push_back(sample);
  }
  return samples;
}

TEST(FitCorrelation, the_reader_takes_what_the_fit_wrote_when_all_correlations_are_equal) {
  // One kernel of each form says nothing about `within`, so those stay at 0.4 and `between` rises to meet them. The
  // mean of nine times 0.4 rounds to less than 0.4.
  std::vector<CorrelationSample::Form> forms;
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g", "h", "i"}) forms.push_back({name, 1, 1});
  const CorrelationFit fit = fit_correlations(common_steps(forms, 100));
  ASSERT_EQ(fit.correlations.between, 0.4);
  EXPECT_EQ(read_back(fit).within_other, fit.correlations.within_other);
}

TEST(FitCorrelation, too_few_steps_for_any_form_are_refused) {
  EXPECT_THROW(fit_correlations(common_steps({{"one", 40, 40}}, 4)), InputError);
  EXPECT_THROW(fit_correlations({}), InputError);
}

TEST(FitCorrelation, a_step_without_width_counts_for_nothing) {
  std::vector<CorrelationSample> samples = made_up_steps(0.3, 0.3, 100);
  const CorrelationFit fit = fit_correlations(samples);
  samples.push_back({.error = 1, .forms = {{"one", 0, 0}}});
  samples.push_back({.error = 1});
  const CorrelationFit again = fit_correlations(samples);
  EXPECT_EQ(again.steps, 100u);
  EXPECT_EQ(again.correlations.within, fit.correlations.within);
  EXPECT_EQ(again.fitted, fit.fitted);
}

}  // namespace foretoken::fit_correlation_test
