#include "kernel/error_correlation.h"

#include <cmath>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "kernel/test_support.h"

namespace foretoken::error_correlation_test {

using namespace test_support;

Estimate about(double value, double half_width) {
  return {.value = value, .low = value - half_width, .high = value + half_width, .kind = Confidence::interpolated};
}

Estimate sum(const ErrorCorrelations& correlations, const std::vector<std::pair<Estimate, std::string_view>>& parts) {
  KernelSum kernels(correlations);
  for (const auto& [seconds, form] : parts) kernels.add(seconds, form);
  return kernels.total();
}

TEST(ErrorCorrelation, one_correlation_for_all_is_the_plain_correlated_sum) {
  RandomStream random(3, "sums");
  for (const double correlation : {0.0, 0.3, 1.0}) {
    const ErrorCorrelations same{
        .within = {{"gemm", correlation}}, .within_other = correlation, .between = correlation};
    std::vector<Estimate> parts;
    KernelSum kernels(same);
    for (int i = 0; i < 20; ++i) {
      const double value = random.uniform(1, 5);
      parts.push_back({.value = value, .low = value - random.uniform(0, 1), .high = value + random.uniform(0, 2)});
      kernels.add(parts.back(), i % 3 == 0 ? "gemm" : i % 3 == 1 ? "memory" : "moe");
    }
    const Estimate plain = sum_with_correlation(parts, correlation), ours = kernels.total();
    EXPECT_NEAR(ours.low, plain.low, 1e-12);
    EXPECT_NEAR(ours.high, plain.high, 1e-12);
    EXPECT_DOUBLE_EQ(ours.value, plain.value);
  }
}

TEST(ErrorCorrelation, kernels_of_one_form_are_less_certain_together_than_kernels_of_two) {
  const ErrorCorrelations correlations{.within = {{"gemm", 1}}, .within_other = 0, .between = 0};
  const Estimate alike = sum(correlations, {{about(5, 1), "gemm"}, {about(5, 1), "gemm"}});
  const Estimate different = sum(correlations, {{about(5, 1), "gemm"}, {about(5, 1), "memory"}});
  EXPECT_DOUBLE_EQ(alike.high, 12);
  EXPECT_DOUBLE_EQ(different.high, 10 + std::sqrt(2));
}

TEST(ErrorCorrelation, a_single_kernel_keeps_its_interval) {
  const Estimate one = sum({}, {{{.value = 2, .low = 1, .high = 5}, "gemm"}});
  EXPECT_EQ(one.low, 1);
  EXPECT_EQ(one.high, 5);
}

class ErrorCorrelationFile : public TestWithFolder {};

TEST_F(ErrorCorrelationFile, what_is_written_is_read_and_what_cannot_be_is_refused) {
  const auto path = folder / "correlations.json";
  const ErrorCorrelations made{.within = {{"gemm", 0.25}, {"moe", 0.5}},
                               .within_other = 0.3,
                               .between = 0.1,
                               .source = "made up",
                               .fitted_on = "2026-01-01"};
  write_file(path, error_correlations_json(made));
  const ErrorCorrelations read = read_error_correlations(path);
  EXPECT_EQ(read.within, made.within);
  EXPECT_EQ(read.within_other, made.within_other);
  EXPECT_EQ(read.between, made.between);
  EXPECT_EQ(read.within_form("nothing"), 0.3);
  ErrorCorrelations wrong = made;
  wrong.within["gemm"] = 0.05;
  write_file(path, error_correlations_json(wrong));
  EXPECT_THROW(read_error_correlations(path), InputError);
  wrong.within["gemm"] = 1.5;
  write_file(path, error_correlations_json(wrong));
  EXPECT_THROW(read_error_correlations(path), InputError);
}

TEST(ErrorCorrelation, every_kernel_has_a_name_for_its_errors) {
  EXPECT_EQ(error_form(GemmShape{}, ""), "gemm");
  EXPECT_EQ(error_form(GemmShape{.scheme = Scheme::fp32}, ""), "gemm_fp32");
  EXPECT_EQ(error_form(CollectiveShape{}, ""), "collective");
  EXPECT_EQ(error_form(PoolShape{}, ""), "roofline");
}

}  // namespace foretoken::error_correlation_test
