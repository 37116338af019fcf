// Logarithm, exponential and power that give the same bits on every machine: the last bit of libm's differs between
// platforms, and between processors with and without fused multiply-add. Only IEEE + - * /, comparisons and exact
// scaling by powers of two are used. Error below 1 ulp. sqrt, floor, ldexp and their like are exact everywhere: the
// standard library's are used.
#pragma once

namespace foretoken {

double portable_log(double x);    // log(0) = -inf, of a negative: NaN
double portable_log2(double x);   // exact for powers of two
double portable_log10(double x);  // exact for powers of ten
double portable_exp(double x);
double portable_pow(double base, double exponent);  // base >= 0; NaN for a negative base
double portable_hypot(double x, double y);
double portable_hypot(double x, double y, double z);

}  // namespace foretoken
