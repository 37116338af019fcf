#include "serving/nested_table.h"

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

double NestedTable::at(std::span<const double> point) const {
  if (point.empty()) return value_;
  const Place where = place(point.front());
  const double lower = below_[where.lower].at(point.subspan(1));
  if (where.share == 0) return lower;
  return lower + where.share * (below_[where.upper].at(point.subspan(1)) - lower);
}

}  // namespace foretoken
