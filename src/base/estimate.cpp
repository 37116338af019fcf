#include "base/estimate.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/portable_math.h"

namespace foretoken {
namespace {

// Nobody has measured how much worse predictions get outside of what they were fitted to. That the errors found inside
// are twice as large there is an assumption.
constexpr double width_outside_measured = 2;

}  // namespace

std::string_view confidence_name(Confidence kind) {
  switch (kind) {
    case Confidence::measured:
      return "measured";
    case Confidence::interpolated:
      return "interpolated";
    case Confidence::extrapolated:
      return "extrapolated";
    case Confidence::roofline:
      return "roofline";
  }
  throw InternalError("every Confidence has a name");
}

Estimate exactly(double value) {
  return {.value = value, .low = value, .high = value, .kind = Confidence::measured};
}

Estimate scaled(const Estimate& part, double factor) {
  ensure(factor >= 0, "an estimate is scaled by a count or unit, never by a negative");
  return {.value = part.value * factor, .low = part.low * factor, .high = part.high * factor, .kind = part.kind};
}

Estimate sum_with_correlation(std::span<const Estimate> parts, double correlation) {
  ensure(correlation >= 0 && correlation <= 1, "a common pairwise correlation lies between 0 and 1");
  if (parts.size() == 1) return parts.front();  // exactly, not only up to rounding
  double total = 0, below = 0, above = 0, below_squares = 0, above_squares = 0, magnitude = 0;
  for (const Estimate& part : parts) {
    const double down = part.value - part.low;
    const double up = part.high - part.value;
    total += part.value;
    magnitude += std::abs(part.value);
    below += down;
    above += up;
    below_squares += down * down;
    above_squares += up * up;
  }
  // Var(sum) = sum of squares + correlation * cross terms; a half-width is proportional to a standard deviation.
  const auto half_width = [&](double linear, double squares) {
    return std::sqrt((1 - correlation) * squares + correlation * linear * linear);
  };
  Confidence weakest = Confidence::measured;
  for (const Estimate& part : parts) {
    if (std::abs(part.value) >= 0.01 * magnitude) weakest = std::max(weakest, part.kind);
  }
  return {.value = total,
          .low = total - half_width(below, below_squares),
          .high = total + half_width(above, above_squares),
          .kind = weakest};
}

Estimate sum_of_independent(std::span<const Estimate> parts) {
  return sum_with_correlation(parts, 0);
}
Estimate sum_of_correlated(std::span<const Estimate> parts) {
  return sum_with_correlation(parts, 1);
}

Estimate product_of_independent(const Estimate& a, const Estimate& b) {
  ensure(a.low > 0 && b.low > 0, "factors of a product of estimates are above zero");
  // In ratios, so that the lower bound stays above zero.
  const auto joint = [](double one, double other) {
    return portable_exp(portable_hypot(portable_log(one), portable_log(other)));
  };
  const double value = a.value * b.value;
  return {.value = value,
          .low = value / joint(a.value / a.low, b.value / b.low),
          .high = value * joint(a.high / a.value, b.high / b.value),
          .kind = std::max(a.kind, b.kind)};
}

Estimate outside_measured(const Estimate& inside) {
  Estimate outside = inside;
  outside.kind = std::max(inside.kind, Confidence::extrapolated);
  if (inside.value == 0) return outside;
  ensure(inside.value > 0 && inside.low >= 0, "an interval of ratios is around a value above zero");
  outside.low = inside.value * portable_pow(inside.low / inside.value, width_outside_measured);
  outside.high = inside.value * portable_pow(inside.high / inside.value, width_outside_measured);
  return outside;
}

Estimate larger_of(const Estimate& a, const Estimate& b) {
  const Confidence kind = a.value == b.value ? std::max(a.kind, b.kind) : a.value > b.value ? a.kind : b.kind;
  return {.value = std::max(a.value, b.value),
          .low = std::max(a.low, b.low),
          .high = std::max(a.high, b.high),
          .kind = kind};
}

}  // namespace foretoken
