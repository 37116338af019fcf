#include "serving/steps/nested_table.h"

#include <algorithm>

#include "base/error.h"

namespace foretoken {

void NestedTable::add(std::span<const int64_t> keys, double value) {
  if (keys.empty()) {
    value_ = value;
    return;
  }
  const auto key = static_cast<double>(keys.front());
  const auto place = std::lower_bound(keys_.begin(), keys_.end(), key);
  const auto index = place - keys_.begin();
  if (place == keys_.end() || *place != key) {
    keys_.insert(place, key);
    below_.emplace(below_.begin() + index);
  }
  below_[static_cast<size_t>(index)].add(keys.subspan(1), value);
}

NestedTable::Place NestedTable::place(double key) const {
  ensure(!keys_.empty(), "a table has points");
  const size_t count = keys_.size();
  if (count == 1 || key <= keys_.front()) return {};
  const auto above = static_cast<size_t>(std::lower_bound(keys_.begin(), keys_.end(), key) - keys_.begin());
  const size_t upper = std::min(above, count - 1);
  return {.lower = upper - 1, .upper = upper, .share = (key - keys_[upper - 1]) / (keys_[upper] - keys_[upper - 1])};
}

double NestedTable::at(std::span<const double> point, Between last) const {
  if (point.empty()) return value_;
  const Place where = place(point.front());
  const std::span<const double> rest = point.subspan(1);
  const double lower = below_[where.lower].at(rest, last);
  if (where.share == 0) return lower;
  const double upper = below_[where.upper].at(rest, last);
  const double straight = lower + where.share * (upper - lower);
  const bool has_lines = rest.empty() && where.share < 1 && where.lower > 0 && where.upper + 1 < keys_.size();
  if (last == Between::straight || !has_lines) return straight;
  const auto slope = [&](size_t from) {
    return (below_[from + 1].value_ - below_[from].value_) / (keys_[from + 1] - keys_[from]);
  };
  const double from_below = lower + slope(where.lower - 1) * (point.front() - keys_[where.lower]);
  const double from_above = upper - slope(where.upper) * (keys_[where.upper] - point.front());
  return std::min(straight, std::max(from_below, from_above));
}

}  // namespace foretoken
