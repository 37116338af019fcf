// The normal distribution and the largest of several normal values, the same bits on every machine.
#pragma once

#include <functional>

namespace foretoken {

inline constexpr double normal_half_width_90 = 1.645;  // standard deviations on each side of the central 90%

// Probability that a standard normal value lies below z; relative error of either tail below 1e-12.
double normal_below(double z);

// The z below which a standard normal value lies with the given probability, above 0 and below 1.
double normal_quantile(double probability);

// Probability that the largest of `count` independent standard normal values (none: certain) lies below z.
double largest_normal_below(double z, double count);

// Mean of of(z) over the largest z of `count` independent standard normal values, count > 0; `of` is smooth. With
// of(z) = z it grows like sqrt(2 ln count).
double mean_of_largest_normal(double count, const std::function<double(double)>& of);

struct MeanAndDeviation {
  double mean = 0, deviation = 0;
};
MeanAndDeviation largest_normal(double count);

}  // namespace foretoken
