// Logarithm, exponential and power that give the same bits on every machine: the last bit of libm's differs between
// platforms. Only IEEE + - * /, comparisons and exact scaling by powers of two are used. Error below 1 ulp.
#pragma once

namespace foretoken {

double portable_log(double x);  // log(0) = -inf, of a negative: NaN
double portable_exp(double x);
double portable_pow(double base, double exponent);  // base >= 0; NaN for a negative base

}  // namespace foretoken
