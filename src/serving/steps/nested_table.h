// Measured values on a grid of any shape, axis below axis: each key has its own next axis.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace foretoken {

// Of the tables that are read into these.
inline constexpr int64_t most_table_tokens = int64_t{1} << 24;
inline constexpr size_t most_table_bytes = size_t{256} << 20;  // those of a GPU have a few megabytes

class NestedTable {
 public:
  // Rows may come in any order; all have the same number of keys. The value of a point given twice is the last.
  void add(std::span<const int64_t> keys, double value);

  std::span<const double> keys() const { return keys_; }
  const NestedTable& below(size_t index) const { return below_[index]; }
  double value() const { return value_; }

  // Linear between the measured points of every axis; beyond the last point the last slope goes on, before the first
  // its value holds. `last` is for the last axis. bends: a time that turns upwards between two points, as when data
  // outgrow a cache, follows the line from below up to where it meets the line from above.
  enum class Between { straight, bends };
  double at(std::span<const double> point, Between last = Between::straight) const;

  // Neighbours of `key` among keys(), and how far it lies from the lower to the upper one; above 1 beyond the last.
  struct Place {
    size_t lower = 0, upper = 0;
    double share = 0;
  };
  Place place(double key) const;

 private:
  std::vector<double> keys_;
  std::vector<NestedTable> below_;
  double value_ = 0;
};

}  // namespace foretoken
