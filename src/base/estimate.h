// Every layer answers with an Estimate: a prediction, its central 90% interval, and what it rests on.
#pragma once

#include <span>
#include <string_view>

namespace foretoken {

// Ordered from strongest to weakest.
enum class Confidence { measured, interpolated, extrapolated, roofline };
std::string_view confidence_name(Confidence kind);

struct Estimate {
  double value = 0;  // the prediction, in the unit the function's name says
  double low = 0;    // central 90% interval
  double high = 0;
  Confidence kind = Confidence::measured;
};

// A number known exactly.
Estimate exactly(double value);

// A copy with value and interval multiplied by a factor that is known exactly (a count, a unit change); factor >= 0.
Estimate scaled(const Estimate& part, double factor);

// The sum of parts whose errors have the given pairwise correlation: 0 = independent (quadrature), 1 = fully correlated
// (linear). Lower and upper half-widths combine separately, so a skewed part keeps its skew. The confidence is the
// weakest among the parts that make up at least 1% of the sum.
Estimate sum_with_correlation(std::span<const Estimate> parts, double correlation);
Estimate sum_of_independent(std::span<const Estimate> parts);
Estimate sum_of_correlated(std::span<const Estimate> parts);

// The product of two positive quantities with independent errors: relative half-widths add in quadrature, the
// confidence is the weaker one.
Estimate product_of_independent(const Estimate& a, const Estimate& b);

// A prediction that leaves what was measured: errors are taken to be twice as large, in logarithms, and the confidence
// is `extrapolated` at best. For a value above zero, or one that is exactly zero.
Estimate outside_measured(const Estimate& inside);

// The larger of two: value and bounds each, the confidence of the larger value (the weaker one when both are equal).
Estimate larger_of(const Estimate& a, const Estimate& b);

}  // namespace foretoken
