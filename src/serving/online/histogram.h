// A histogram with fixed bounds, as Prometheus keeps it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace foretoken {

class Histogram {
 public:
  // Upper bounds, ascending, each inclusive; one more bucket takes what lies above.
  explicit Histogram(std::span<const double> bounds)
      : bounds_(bounds.begin(), bounds.end()), counts_(bounds.size() + 1) {}

  void add(double value) {
    const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
    ++counts_[static_cast<size_t>(bucket)];
    ++count_;
    sum_ += value;
  }

  const std::vector<double>& bounds() const { return bounds_; }
  const std::vector<int64_t>& counts() const { return counts_; }  // of each bucket alone
  int64_t count() const { return count_; }
  double sum() const { return sum_; }

 private:
  std::vector<double> bounds_;
  std::vector<int64_t> counts_;
  int64_t count_ = 0;
  double sum_ = 0;
};

}  // namespace foretoken
