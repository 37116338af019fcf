#include "base/portable_math.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>

namespace foretoken {
namespace {

// A number as an unevaluated sum of two doubles, |low| <= ulp(high) / 2: about 106 bits.
// The operations are those of T. J. Dekker, "A floating-point technique for extending the available precision",
// Numerische Mathematik 18 (1971); they need round-to-nearest and no fused multiply-add.
struct Pair {
  double high = 0, low = 0;
};

// a + b without error, for |a| >= |b|.
constexpr Pair add_in_order(double a, double b) {
  const double sum = a + b;
  return {sum, b - (sum - a)};
}

constexpr Pair add(double a, double b) {
  const double sum = a + b;
  const double of_b = sum - a;
  return {sum, (a - (sum - of_b)) + (b - of_b)};
}

// a * b without error, for |a|, |b| < 2^996.
constexpr Pair multiply(double a, double b) {
  constexpr double splitter = 134217729;  // 2^27 + 1
  const double a_top = a * splitter - (a * splitter - a), a_rest = a - a_top;
  const double b_top = b * splitter - (b * splitter - b), b_rest = b - b_top;
  const double product = a * b;
  return {product, ((a_top * b_top - product) + a_top * b_rest + a_rest * b_top) + a_rest * b_rest};
}

constexpr Pair operator+(Pair a, Pair b) {
  const Pair sum = add(a.high, b.high);
  return add_in_order(sum.high, sum.low + (a.low + b.low));
}

constexpr Pair operator*(Pair a, Pair b) {
  const Pair product = multiply(a.high, b.high);
  return add_in_order(product.high, product.low + (a.high * b.low + a.low * b.high));
}

constexpr Pair divide(Pair a, double b) {
  const double quotient = a.high / b;
  const Pair back = multiply(quotient, b);
  return add_in_order(quotient, (((a.high - back.high) - back.low) + a.low) / b);
}

constexpr Pair divide(double a, Pair b) {
  const double quotient = a / b.high;
  const Pair back = multiply(quotient, b.high);
  return add_in_order(quotient, (((a - back.high) - back.low) - quotient * b.low) / b.high);
}

// ln 2 in two parts; the first has 32 bits, so its product with an exponent is exact.
constexpr double ln2_high = 0x1.62e42feep-1;
constexpr double ln2_low = 0x1.a39ef35793c76p-33;

// 1, 1/3, 1/5, ... 1/29
constexpr auto odd_reciprocals = [] {
  std::array<Pair, 15> values{};
  for (size_t i = 0; i < values.size(); ++i) values[i] = divide(Pair{1, 0}, static_cast<double>(2 * i + 1));
  return values;
}();

// x = m 2^power with sqrt(1/2) <= m < sqrt(2), for finite x > 0, and s = (m - 1) / (m + 1), so |s| <= 0.172.
struct Reduced {
  int power = 0;
  Pair s;
};

Reduced reduce(double x) {
  int power = 0;
  double fraction = std::frexp(x, &power);
  if (fraction < 0.70710678118654752) {
    fraction *= 2;
    --power;
  }
  return {power, divide(fraction - 1, add(fraction, 1))};
}

// The terms of log(m) / 2s beyond s^2: a plain double holds their share where the terms before are pairs.
double series_tail(double square, size_t first) {
  double tail = 0;
  for (size_t i = std::size(odd_reciprocals) - 1; i >= first; --i) tail = tail * square + odd_reciprocals[i].high;
  return tail;
}

// log x = power ln 2 + 2 (s + s^3/3 + s^5/5 + ...); terms from s^31/31 on are below 2^-80.
Pair log_pair(const Reduced& x) {
  const Pair& s = x.s;
  const Pair square = s * s;
  // Terms beyond s^11 are below 2^-31 of the result.
  Pair series{series_tail(square.high, 6), 0};
  for (size_t i = 6; i-- > 0;) series = series * square + odd_reciprocals[i];
  const Pair of_fraction = series * Pair{2 * s.high, 2 * s.low};
  if (x.power == 0) return of_fraction;
  const Pair of_power = add_in_order(x.power * ln2_high, x.power * ln2_low);
  return of_power + of_fraction;
}

Pair log_pair(double x) {
  return log_pair(reduce(x));
}

// The sum above with plain doubles from s^3 on, which decides nearly always how the result is rounded; else with pairs.
double rounded_log(double x) {
  const Reduced reduced = reduce(x);
  const double s = reduced.s.high, square = s * s;
  const double rest = 2 * (s * square * series_tail(square, 1));
  const Pair large = add(reduced.power * ln2_high, 2 * s);
  const double small = large.low + (reduced.power * ln2_low + (2 * reduced.s.low + rest));
  // `rest` is off by less than 8 units in its last place, what is added to it by far less.
  const double error = std::abs(rest) * 0x1p-49 + std::abs(large.high) * 0x1p-80;
  const double low = large.high + (small - error), high = large.high + (small + error);
  return low == high ? low : log_pair(reduced).high;
}

// 1/2!, 1/3!, ... 1/14!
constexpr auto reciprocal_factorials = [] {
  std::array<double, 13> values{};
  double factorial = 1;  // exact up to 18!
  for (size_t i = 0; i < values.size(); ++i) {
    factorial *= static_cast<double>(i + 2);
    values[i] = 1 / factorial;
  }
  return values;
}();

// exp(x.high + x.low): with k = round(x / ln 2) and r = x - k ln 2, |r| <= 0.347, exp x = 2^k (1 + r + r^2/2! + ...);
// the terms from r^15/15! on are below 2^-62.
double exp_of_pair(Pair x) {
  if (std::isnan(x.high)) return x.high;
  if (x.high > 710) return std::numeric_limits<double>::infinity();
  if (x.high < -746) return 0;
  const double power = std::floor(x.high * 1.4426950408889634 + 0.5);
  const Pair r = add(x.high - power * ln2_high, x.low - power * ln2_low);
  double tail = 0;  // (exp r - 1 - r) / r^2
  for (size_t i = std::size(reciprocal_factorials); i-- > 0;) tail = tail * r.high + reciprocal_factorials[i];
  const Pair whole = add_in_order(1, r.high);
  const double scaled = whole.high + (whole.low + (r.low * (1 + r.high) + tail * r.high * r.high));
  const int exponent = static_cast<int>(power);
  // ldexp is a slow call, and both are exact where the result is a normal number.
  if (exponent < -1020 || exponent > 1022) return std::ldexp(scaled, exponent);
  return scaled * std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52);
}

bool has_log(double x) {
  return x > 0 && !std::isinf(x);
}

double log_at_limit(double x) {
  if (std::isnan(x) || x < 0) return std::numeric_limits<double>::quiet_NaN();
  return x == 0 ? -std::numeric_limits<double>::infinity() : x;
}

constexpr Pair one_over_ln2{0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56};
constexpr Pair one_over_ln10{0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57};

}  // namespace

double portable_log(double x) {
  return has_log(x) ? rounded_log(x) : log_at_limit(x);
}

double portable_log2(double x) {
  return has_log(x) ? (log_pair(x) * one_over_ln2).high : log_at_limit(x);
}

double portable_log10(double x) {
  return has_log(x) ? (log_pair(x) * one_over_ln10).high : log_at_limit(x);
}

double portable_exp(double x) {
  return exp_of_pair({x, 0});
}

double portable_pow(double base, double exponent) {
  if (exponent == 0 || base == 1) return 1;
  if (std::isnan(base) || std::isnan(exponent) || base < 0) return std::numeric_limits<double>::quiet_NaN();
  if (base == 0 || std::isinf(base)) {
    return (base == 0) == (exponent > 0) ? 0 : std::numeric_limits<double>::infinity();
  }
  const Pair log_base = log_pair(base);
  const double rough = log_base.high * exponent;
  if (!(std::abs(rough) < 1000)) return exp_of_pair({rough, 0});  // far out of range, and too large to split
  return exp_of_pair(log_base * Pair{exponent, 0});
}

double portable_hypot(double x, double y) {
  return portable_hypot(x, y, 0);
}

double portable_hypot(double x, double y, double z) {
  if (std::isinf(x) || std::isinf(y) || std::isinf(z)) return std::numeric_limits<double>::infinity();
  const double largest = std::max({std::abs(x), std::abs(y), std::abs(z)});
  if (!(largest > 0)) return x + y + z;
  // Squares of very large and very small numbers would leave the range.
  const double a = x / largest, b = y / largest, c = z / largest;
  return largest * std::sqrt(a * a + b * b + c * c);
}

}  // namespace foretoken
