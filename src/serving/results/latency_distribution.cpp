#include "serving/results/latency_distribution.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/error.h"
#include "base/simulated_time.h"

namespace foretoken {
namespace {

constexpr int leading_bits = 11;
constexpr uint64_t half = uint64_t{1} << (leading_bits - 1);

// Values below 2^11 have a bucket of their own.
size_t bucket_of(Picoseconds value) {
  const auto bits = static_cast<uint64_t>(value);
  const int shift = std::max(0, static_cast<int>(std::bit_width(bits)) - leading_bits);
  return static_cast<size_t>(shift) * half + (bits >> shift);
}

Picoseconds middle_of(size_t bucket) {
  if (bucket < 2 * half) return static_cast<Picoseconds>(bucket);
  const size_t shift = bucket / half - 1;
  const uint64_t least = (bucket - shift * half) << shift;
  return static_cast<Picoseconds>(least + ((uint64_t{1} << shift) - 1) / 2);
}

}  // namespace

void LatencyDistribution::add(Picoseconds value, int64_t count) {
  ensure(value >= 0 && count >= 0, "time passes between two events, and they happen a whole number of times");
  if (count == 0) return;
  // B. P. Welford, "Note on a method for calculating corrected sums of squares and products", Technometrics 4 (1962),
  // for `count` equal values at once (Chan, Golub, LeVeque 1979).
  count_ += count;
  const double added = static_cast<double>(count), all = static_cast<double>(count_);
  const double beside = to_seconds(value).value() - mean_;
  mean_ += beside * added / all;
  squares_ += beside * beside * added * (all - added) / all;
  if (!buckets_.empty()) return count_in_bucket(value, count);
  if (!entries_.empty() && entries_.back().first == value) {
    entries_.back().second += count;
    return;
  }
  entries_.emplace_back(value, count);
  if (entries_.size() <= exact_entries_) return;
  for (const auto& [kept, times] : entries_) count_in_bucket(kept, times);
  entries_ = {};
}

void LatencyDistribution::count_in_bucket(Picoseconds value, int64_t count) {
  const size_t bucket = bucket_of(value);
  if (bucket >= buckets_.size()) buckets_.resize(bucket + 1);
  buckets_[bucket] += count;
}

double LatencyDistribution::deviation_seconds() const {
  return count_ == 0 ? 0 : std::sqrt(squares_ / static_cast<double>(count_));
}

std::vector<LatencyDistribution::Counted> LatencyDistribution::sorted() const {
  std::vector<Counted> values = entries_;
  std::sort(values.begin(), values.end());
  for (size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    if (buckets_[bucket] > 0) values.emplace_back(middle_of(bucket), buckets_[bucket]);
  }
  return values;
}

namespace {

// `nth` gives the value at a place among all in order.
template <class Nth>
std::vector<double> quantiles(std::span<const double> q, int64_t count, const Nth& nth) {
  std::vector<double> result(q.size(), 0);
  for (size_t i = 0; i < q.size(); ++i) {
    ensure(q[i] >= 0 && q[i] <= 1, "a quantile is a share of the values");
    const double position = q[i] * static_cast<double>(count - 1);
    const auto lower = static_cast<int64_t>(position);
    const double below = nth(lower), above = nth(std::min(lower + 1, count - 1));
    result[i] = below + (above - below) * (position - static_cast<double>(lower));
  }
  return result;
}

}  // namespace

std::vector<double> LatencyDistribution::quantiles_seconds(std::span<const double> q) const {
  if (count_ == 0) return std::vector<double>(q.size(), 0);
  if (count_ <= 2 * static_cast<int64_t>(entries_.size())) return quantiles_of_few_equal(q);
  const std::vector<Counted> values = sorted();
  std::vector<int64_t> ends;  // values up to and with each entry
  ends.reserve(values.size());
  for (const auto& [value, count] : values) ends.push_back((ends.empty() ? 0 : ends.back()) + count);
  return quantiles(q, count_, [&](int64_t index) {
    const auto found = std::upper_bound(ends.begin(), ends.end(), index);
    return to_seconds(values[static_cast<size_t>(found - ends.begin())].first).value();
  });
}

// Only a few places are asked for, so the values need no order. Those before `known` are the least ones: places that
// follow each other look at ever fewer.
std::vector<double> LatencyDistribution::quantiles_of_few_equal(std::span<const double> q) const {
  std::vector<Picoseconds> values;
  values.reserve(static_cast<size_t>(count_));
  for (const auto& [value, count] : entries_) values.insert(values.end(), static_cast<size_t>(count), value);
  int64_t known = 0;
  return quantiles(q, count_, [&](int64_t index) {
    const int64_t first = index >= known ? known : 0;
    const auto place = values.begin() + index;
    std::nth_element(values.begin() + first, place, values.end());
    known = index;
    return to_seconds(*place).value();
  });
}

}  // namespace foretoken
