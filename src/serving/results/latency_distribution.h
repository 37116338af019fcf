// Many latencies in bounded memory: exact while they are few, then within a known error.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "serving/requests/request.h"

namespace foretoken {

// Mean and deviation are always of all values. Quantiles are exact up to `exact_entries` calls of add(); beyond that
// values are counted in buckets whose width is at most 1/1024 of them (exponent and the 11 leading bits, as
// HdrHistogram does), so a quantile is off by at most 0.05%. At most 8 MB.
class LatencyDistribution {
 public:
  explicit LatencyDistribution(size_t exact_entries = size_t{1} << 18) : exact_entries_(exact_entries) {}

  void add(Picoseconds value, int64_t count = 1);  // value and count >= 0

  int64_t count() const { return count_; }
  bool is_exact() const { return buckets_.empty(); }

  // 0 without values.
  double mean_seconds() const { return mean_; }
  double deviation_seconds() const;  // of the population, as numpy.std
  // Each q from 0 to 1; linear between neighbours, as numpy.percentile.
  std::vector<double> quantiles_seconds(std::span<const double> q) const;

 private:
  using Counted = std::pair<Picoseconds, int64_t>;
  std::vector<Counted> sorted() const;
  std::vector<double> quantiles_of_few_equal(std::span<const double> q) const;
  void count_in_bucket(Picoseconds value, int64_t count);

  size_t exact_entries_;
  std::vector<Counted> entries_;  // while exact
  std::vector<int64_t> buckets_;  // from then on
  int64_t count_ = 0;
  double mean_ = 0, squares_ = 0;  // of seconds; squares of what lies beside the mean
};

}  // namespace foretoken
